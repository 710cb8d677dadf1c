"""What a change touches: findings in changed files, and those whose story leads through one, wherever they stand."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from nosync_lint.cli import main
from nosync_lint.config import Settings, find_config, load_config
from nosync_lint.finding import Confidence, Finding, Hop, Severity
from nosync_lint.pipeline import run
from nosync_lint.report import Report
from nosync_lint.source import SourceFile, Span
from nosync_lint.touching import touched, touches

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = sorted(path for path in (ROOT / "fixtures").glob("*/across_modules"))
CHAINED = {
    "step.py": """
import torch
from place import store


def forward(x: torch.Tensor):  # nosync-lint: hot
    store(x)
""",
    "place.py": """
import deep


def store(x):
    deep.read(x)
""",
    "deep.py": """
def read(x):
    return x.item()


def read_twice(x):
    return x.item()
""",
    "other.py": """
import torch
import deep


def again(x: torch.Tensor):  # nosync-lint: hot
    deep.read_twice(x)
    return x.tolist()  # nosync-lint: ignore[tolist-read] wanted


def quiet():
    return 1  # nosync-lint: ignore[tolist-read] needless
""",
}


def project(folder: Path, files: dict[str, str]) -> None:
    (folder / "nosync-lint.toml").touch()
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")


def settings() -> Settings:
    path = find_config(Path.cwd())
    assert path is not None
    return load_config(path)


def lint(*touching: str, **changed: str) -> Report:
    """What is reported in the working folder, as a whole or where it touches some files."""
    return run(["."], replace(settings(), **changed), jobs=1, cache=False, touching=touching or None)  # type: ignore[arg-type]


def finding(filename: str, *flow: str, related: str = "related.py") -> Finding:
    return Finding(
        "NSL201", "item-read", "", filename, Span(1, 1, 1, 2), Severity.ERROR, Confidence.CERTAIN, "",
        flow=tuple(Hop(name, 1, "") for name in flow),
        evidence=(Hop("made.py", 1, ""),),
        related=(Hop(related, 1, ""),),
    )  # fmt: skip


@pytest.mark.parametrize("name", ["end.py", "root.py", "hop.py", "related.py"])
def test_a_finding_touches_its_file_those_of_its_flow_and_the_related_ones(name: str) -> None:
    assert touches(finding("end.py", "root.py", "hop.py", "end.py"), {"x.py", name})


def test_a_finding_does_not_touch_the_files_of_its_evidence_or_others() -> None:
    assert not touches(finding("end.py", "root.py"), {"made.py", "x.py"})


def test_given_folders_stand_for_the_files_in_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    files = [SourceFile(tmp_path / name, name) for name in ("a.py", "pool/b.py", "pool/deep/c.py", "pools.py")]
    assert touched(files, ["a.py"]) == {"a.py"}
    assert touched(files, ["pool"]) == {"pool/b.py", "pool/deep/c.py"}
    assert touched(files, [str(tmp_path)]) == {file.name for file in files}
    assert touched(files, ["gone.py"]) == set()


@pytest.mark.parametrize("program", [ROOT / "demo", *PROGRAMS], ids=lambda path: f"{path.parent.name}/{path.name}")
def test_for_each_file_what_is_told_is_what_touches_it_in_the_whole_report(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only a part of the program is judged then. The findings are equal in all they say, fingerprints included."""
    folder = tmp_path / "program"
    shutil.copytree(program, folder)
    if find_config(folder) is None:
        (folder / "nosync-lint.toml").touch()
    monkeypatch.chdir(folder)
    for heat in ("hot", "any"):
        whole = lint(heat=heat)
        assert whole.failures == ()
        names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.*") if path.suffix != ".toml")
        for name in names:
            told = lint(name, heat=heat)
            assert told.findings == tuple(one for one in whole.findings if touches(one, {name})), name
            assert told.suppressed == tuple(one for one in whole.suppressed if touches(one.finding, {name})), name


def test_a_change_in_the_middle_of_a_chain_tells_what_waits_at_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project(tmp_path, CHAINED)
    monkeypatch.chdir(tmp_path)
    (found,) = lint("place.py").findings
    assert (found.filename, found.span.row) == ("deep.py", 3)
    assert [hop.filename for hop in found.flow] == ["step.py", "step.py", "place.py", "deep.py"]


def test_equal_lines_keep_the_fingerprints_of_the_whole_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`x.item()` stands twice in a file; what touches `other.py` is the second of them."""
    project(tmp_path, CHAINED)
    monkeypatch.chdir(tmp_path)
    first, second = [one for one in lint().findings if one.code == "NSL201"]
    (told,) = [one for one in lint("other.py").findings if one.code == "NSL201"]
    assert told == second
    assert told.fingerprint != first.fingerprint


def test_comments_in_files_that_are_not_touched_are_not_called_needless(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project(tmp_path, CHAINED)
    monkeypatch.chdir(tmp_path)
    assert [one.code for one in lint().findings if one.filename == "other.py"] == ["NSL001"]
    assert [one.code for one in lint("step.py").findings] == ["NSL201"]
    assert [one.code for one in lint("other.py").findings] == ["NSL201", "NSL001"]


def test_what_is_hidden_is_counted_where_it_touches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project(tmp_path, CHAINED)
    monkeypatch.chdir(tmp_path)
    assert lint("step.py").hidden.suppressed == 0
    assert lint("other.py").hidden.suppressed == 1


def test_the_summary_counts_the_touched_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project(tmp_path, CHAINED)
    monkeypatch.chdir(tmp_path)
    told = lint("step.py", "place.py")
    assert (told.files_reported, told.files_linked) == (2, 4)


def test_no_file_of_the_project_touches_nothing_and_nothing_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project(tmp_path, CHAINED)
    (tmp_path / "nosync-lint.toml").write_text('exclude = ["deep.py"]\n')
    monkeypatch.chdir(tmp_path)
    told = lint("deep.py")
    assert (told.exit_code, told.findings, told.files_linked) == (0, (), 0)
    assert told.notes == ("no changed file was given that is part of what is read: nothing to report",)


def test_all_files_touch_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project(tmp_path, CHAINED)
    monkeypatch.chdir(tmp_path)
    assert lint(*CHAINED).findings == lint().findings


def test_a_baseline_accepts_the_same_as_in_a_whole_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two equal findings the first is accepted; the change touches the second, which stays new."""
    project(tmp_path, CHAINED)
    monkeypatch.chdir(tmp_path)
    entry = {"file": "deep.py", "scope": "", "code": "NSL201", "snippet": "x.item()", "count": 1}
    (both,) = {(one.scope, one.code) for one in lint().findings if one.code == "NSL201" and "twice" not in one.scope}
    entry["scope"] = both[0]
    (tmp_path / "base.jsonl").write_text('{"nosync-lint-baseline": 1}\n' + json.dumps(entry) + "\n")
    whole = lint(baseline="base.jsonl")
    assert [one.scope for one in whole.findings if one.code == "NSL201"] == ["read_twice"]
    assert [one.code for one in lint("other.py", baseline="base.jsonl").findings] == ["NSL201", "NSL001"]
    assert lint("step.py", baseline="base.jsonl").findings == ()


def test_a_stale_entry_is_told_where_its_file_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project(tmp_path, CHAINED)
    monkeypatch.chdir(tmp_path)
    entry = {"file": "step.py", "scope": "forward", "code": "NSL201", "snippet": "x.item()", "count": 1}
    (tmp_path / "base.jsonl").write_text('{"nosync-lint-baseline": 1}\n' + json.dumps(entry) + "\n")
    assert [one.code for one in lint("step.py", baseline="base.jsonl").findings] == ["NSL005", "NSL201"]
    assert [one.code for one in lint("place.py", baseline="base.jsonl").findings] == ["NSL201"]


def test_budgets_are_a_matter_of_whole_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project(tmp_path, CHAINED)
    (tmp_path / "nosync-lint.toml").write_text('[budgets]\n"again" = 5\n')
    monkeypatch.chdir(tmp_path)
    assert "NSL007" in [one.code for one in lint().findings]
    assert [one.code for one in lint("deep.py").findings] == ["NSL201", "NSL201"]


@pytest.mark.parametrize("option", [("--since", "HEAD"), ("--write-baseline",), ("--prune-baseline",)])
def test_options_about_the_whole_project_are_refused_beside_it(
    option: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", "--touching", *option]) == 2
    assert f"--touching and {option[0]} cannot be used together" in capsys.readouterr().err
