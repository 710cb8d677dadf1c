"""Findings in notebooks name the cell and the row in it, in every answer; comments work, and no fix is made."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nosync_lint import cli
from nosync_lint.config import Settings
from nosync_lint.finding import Applicability, Confidence, Edit, Finding, Fix, Hop, Severity
from nosync_lint.in_cells import Cells
from nosync_lint.pipeline import run
from nosync_lint.source import Span

IMPORTS = "%matplotlib inline\nimport torch\nimport model"
STEP = "def step(ids: torch.LongTensor):  # nosync-lint: hot\n    x = ids.cuda(non_blocking=True)\n    return torch.unique(x)\n"
USE = "!nvidia-smi\n%time y = step(torch.ones(3).long())\ny.item()"
Capture = pytest.CaptureFixture[str]


def write(path: Path, *cells: str | None) -> None:
    """A notebook of code cells; None stands for one of text."""
    made = [
        {"cell_type": "markdown" if cell is None else "code", "metadata": {}, "source": (cell or "# text")}
        for cell in cells
    ]
    path.write_text(json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": made}, indent=1))


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "nosync-lint.toml").write_text('ignore = ["NSL105"]\n')
    write(tmp_path / "model.ipynb", None, IMPORTS, STEP, None, USE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def check(*arguments: str) -> int:
    return cli.main(["check", "--no-cache", "-j", "1", "--heat", "any", *arguments])


def findings(capsys: Capture, *arguments: str) -> list[dict[str, Any]]:
    check("--output-format", "json", *arguments)
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["findings"]
    return found


def test_a_finding_names_its_cell_and_the_row_in_it(project: Path, capsys: Capture) -> None:
    found = findings(capsys)
    places = [(one["code"], one["filename"], one["cell"], one["location"], one["end_location"]) for one in found]
    assert places == [
        ("NSL301", "model.ipynb", 3, {"row": 3, "column": 12}, {"row": 3, "column": 27}),
        ("NSL201", "model.ipynb", 5, {"row": 3, "column": 1}, {"row": 3, "column": 9}),
    ]
    assert [(hop["filename"], hop["cell"], hop["row"]) for hop in found[0]["flow"]] == [
        ("model.ipynb", 3, 1),
        ("model.ipynb", 3, 3),
    ]


@pytest.mark.parametrize("color", ["never", "always"])
def test_text_names_the_cell_and_shows_its_lines(project: Path, capsys: Capture, color: str) -> None:
    assert check("--color", color) == 1
    out = capsys.readouterr().out
    assert "model.ipynb:cell 3:3:12" in out
    assert "model.ipynb:cell 5:3:1" in out
    if color == "always":
        assert "nvidia" in out


def test_comments_in_cells_suppress(project: Path, capsys: Capture) -> None:
    write(
        project / "model.ipynb", None, IMPORTS, STEP.replace("(x)\n", "(x)  # nosync-lint: ignore[NSL301] once\n"),
        "# nosync-lint: ignore[NSL201] for nothing\nz = 1", "# nosync-lint: off[NSL201] shown\n" + USE,
    )  # fmt: skip
    assert [(one["code"], one["cell"], one["location"]["row"]) for one in findings(capsys)] == [("NSL001", 4, 1)]
    (first, second) = run(["."], Settings(heat="any"), jobs=1, cache=False).suppressed
    assert (first.finding.cell, first.row, second.finding.cell, second.row) == (3, 3, 5, 1)


def test_a_line_is_explained_by_its_cell(project: Path, capsys: Capture) -> None:
    assert check("--explain", "model.ipynb:cell 3:3") == 0
    out = capsys.readouterr().out
    assert out.startswith("model.ipynb:cell 3:3 in `step`\n    return torch.unique(x)\nreported: NSL301")
    assert "model.ipynb:cell 3:2 `x = ids.cuda(non_blocking=True)`" in out
    assert check("--explain", "model.ipynb:cell 3:3:12", "--output-format", "json") == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["filename"], told["row"], told["facts"]["sites"][0]["span"]["row"]) == ("model.ipynb:cell 3", 3, 3)


@pytest.mark.parametrize(
    "place", ["model.ipynb:3", "model.ipynb:cell 1:1", "model.ipynb:cell 3:9", "model.ipynb:cell 99:1"]
)
def test_a_place_that_is_in_no_code_cell_is_told(project: Path, capsys: Capture, place: str) -> None:
    assert check("--explain", place) == 2
    told = "model.ipynb: name a row of one of its code cells 2, 3, 5, such as model.ipynb:cell 2:1"
    assert told in capsys.readouterr().err


def test_a_cell_of_a_file_without_cells_is_told(project: Path, capsys: Capture) -> None:
    (project / "a.py").write_text("x = 1\n")
    assert check("--explain", "a.py:cell 1:1") == 2
    assert "a.py: has no code cells; name a row of the file: a.py:1" in capsys.readouterr().err


def test_the_graph_names_cells(project: Path, capsys: Capture) -> None:
    assert cli.main(["graph", "--no-cache"]) == 0
    assert capsys.readouterr().out.startswith("step model.ipynb:cell 3:1, hot root: marked hot\n  3: NSL301 ")


def test_a_notebook_that_cannot_be_read_is_told_and_the_run_goes_on(project: Path, capsys: Capture) -> None:
    (project / "broken.ipynb").write_text('{\n "cells": [')
    write(project / "half.ipynb", "print 'x'", "import torch\nt = torch.ones(3).cuda().tolist()")
    found = findings(capsys)
    told = [(one["code"], one["filename"], one["cell"], one["location"]["row"]) for one in found]
    assert told == [
        ("NSL000", "broken.ipynb", None, 2),
        ("NSL000", "half.ipynb", 1, 1),
        ("NSL104", "half.ipynb", 2, 2),
        ("NSL202", "half.ipynb", 2, 2),
        ("NSL301", "model.ipynb", 3, 3),
        ("NSL201", "model.ipynb", 5, 3),
    ]
    assert "Python 2" in found[1]["message"]


def test_a_module_beside_a_notebook_of_its_name_is_what_is_imported(project: Path, capsys: Capture) -> None:
    (project / "model.py").write_text("import torch\ndef make():\n    return torch.ones(3, device='cuda')\n")
    (project / "main.py").write_text("import model\ndef step():  # nosync-lint: hot\n    return model.make().item()\n")
    assert [(one["filename"], one["code"]) for one in findings(capsys, "main.py")] == [("main.py", "NSL201")]


def test_the_cache_changes_nothing(project: Path, capsys: Capture) -> None:
    arguments = ["check", "-j", "1", "--heat", "any", "--output-format", "json"]
    outputs = []
    for _ in range(2):
        cli.main(arguments)
        outputs.append(capsys.readouterr().out)
    assert outputs[0] == outputs[1]
    assert '"cell": 5' in outputs[0]


def test_checkpoints_and_excluded_notebooks_are_left_out(project: Path, capsys: Capture) -> None:
    (project / ".ipynb_checkpoints").mkdir()
    write(project / ".ipynb_checkpoints" / "model-checkpoint.ipynb", STEP)
    assert {one["filename"] for one in findings(capsys)} == {"model.ipynb"}
    assert findings(capsys, "--exclude", "*.ipynb") == []


def test_a_fix_never_reaches_a_notebook() -> None:
    fix = Fix("index-fill", Applicability.SAFE, "m", (Edit(Span(3, 1, 3, 2), "x"),))
    one = Finding(
        "NSL101", "scalar-index-write", "m", "a.ipynb", Span(3, 1, 4, 2), Severity.ERROR,
        Confidence.CERTAIN, "", fix=fix,
        flow=(Hop("a.ipynb", 1, "n"), Hop("a.py", 3, "n")),
    )  # fmt: skip
    told = Cells({"a.ipynb": ((1, 2), (3, 4))}).finding(one)
    assert (told.fix, told.cell, told.span) == (None, 4, Span(1, 1, 2, 2))
    assert [hop.file for hop in told.flow] == ["a.ipynb:cell 2", "a.py"]
    assert Cells({}).finding(one) is one


@pytest.mark.parametrize("form", ["text", "markdown"])
def test_accepted_findings_name_their_cell(project: Path, capsys: Capture, form: str) -> None:
    write(project / "model.ipynb", None, IMPORTS, STEP.replace("(x)\n", "(x)  # nosync-lint: ignore[NSL301] once\n"))
    cli.main(["waivers", "--no-cache", "-j", "1", "--output-format", form])
    out = capsys.readouterr().out
    assert "model.ipynb:cell 3:3:12" in out
    assert "model.ipynb:cell 3:1 -> model.ipynb:cell 3:3" in out


def test_accepted_findings_have_their_cell_for_programs(project: Path, capsys: Capture) -> None:
    write(project / "model.ipynb", None, IMPORTS, STEP.replace("(x)\n", "(x)  # nosync-lint: ignore[NSL301] once\n"))
    cli.main(["waivers", "--no-cache", "-j", "1", "--output-format", "json"])
    (one,) = json.loads(capsys.readouterr().out)["waivers"]
    assert (one["row"], one["finding"]["cell"], one["finding"]["location"]["row"]) == (3, 3, 3)
    assert [(hop["cell"], hop["row"]) for hop in one["finding"]["flow"]] == [(3, 1), (3, 3)]


def test_comments_are_not_written_into_notebooks(project: Path, capsys: Capture) -> None:
    before = (project / "model.ipynb").read_bytes()
    assert check("--add-ignore", "once") == 1
    told = "model.ipynb:cell 3:3: NSL301 dedup-on-device: notebooks are left alone: write the comment into cell 3"
    assert f"not covered: {told}\n" in capsys.readouterr().err
    assert (project / "model.ipynb").read_bytes() == before


FILL = 'table = torch.zeros(8, device="cuda")\ntable[torch.arange(4, device="cuda")] = -1\n'


@pytest.mark.parametrize("option", ["--fix", "--diff", "--fix-only"])
def test_a_run_that_would_fix_a_cell_says_that_notebooks_are_left_alone(
    project: Path, capsys: Capture, option: str
) -> None:
    write(project / "model.ipynb", IMPORTS, FILL)
    before = (project / "model.ipynb").read_bytes()
    check(option)
    told = "1 finding in notebooks could be fixed: fixes leave notebooks alone, change the cells by hand"
    out, err = capsys.readouterr()
    assert (f"note: {told}\n" in out) if option == "--fix" else (err == f"nothing to fix; {told}\n")
    assert (project / "model.ipynb").read_bytes() == before
    check()
    assert "notebooks" not in capsys.readouterr().out
