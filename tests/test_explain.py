"""`check --explain FILE:LINE`: why a line is or is not reported."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from nosync_lint import pipeline
from nosync_lint.answers import Explanation
from nosync_lint.cli import main
from nosync_lint.config import Settings, load_config
from nosync_lint.discover import Discovered, discover
from nosync_lint.finding import Finding, Heat
from nosync_lint.ratchet import Before
from nosync_lint.report.explanation import write_explanation

ROOT = Path(__file__).resolve().parent.parent
Capture = pytest.CaptureFixture[str]
Explain = Callable[..., str]

SERVE = {
    "serve/__init__.py": "",
    "serve/pool.py": """\
        import torch
        from other_library import mystery

        from serve.work import read, uncalled

        VALIDATE_STEPS = False


        class Pool:
            def __init__(self, size: int) -> None:
                self.table = torch.zeros(size, dtype=torch.int64, device="cuda")

            def step(self, pages):  # nosync-lint: hot
                index = mystery()
                read(index)
                read(self.pending)
                if VALIDATE_STEPS:
                    self.table.sum().item()
                self.table[1:3] = 0
                return self.table.max().item()

            def add(self, extra):
                self.pending = extra

            def load_state(self):
                self.check()

            def check(self):
                return self.table.min().item()  # nosync-lint: ignore[item-read] asked for by hand
        """,
    "serve/work.py": """\
        def read(values):
            return values.item()


        def uncalled(values):
            return len(
                values,
            )
        """,
}


@pytest.fixture
def explain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> Explain:
    """Writes files into an empty project, asks for a line, and gives what is printed."""
    monkeypatch.chdir(tmp_path)

    def run(place: str, *arguments: str, files: Mapping[str, str] = SERVE, code: int = 0) -> str:
        for name, text in {"nosync-lint.toml": 'target-torch = "2.13"\n', **files}.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(dedent(text), encoding="utf-8")
        assert main(["check", "-j", "1", "--no-cache", "--explain", place, *arguments]) == code
        printed = capsys.readouterr()
        return printed.err if code else printed.out

    return run


def row(text: str, file: str = "serve/pool.py", files: Mapping[str, str] = SERVE) -> str:
    """FILE:LINE of the first line that holds a text."""
    lines = dedent(files[file]).splitlines()
    return f"{file}:{next(number for number, line in enumerate(lines, 1) if text in line)}"


def without_the_words_of_the_rule(told: str) -> str:
    """An explanation without the message and cure of the finding, which belong to its rule."""
    return "".join(line for line in told.splitlines(True) if not line.startswith(("    NSL201: ", "      instead: ")))


def test_a_reported_line_tells_its_operands_row_and_chain(explain: Explain) -> None:
    told = explain(row("self.table.max()"))
    assert "    NSL201: `self.table.max().item()` reads" in told
    assert "      instead: " in told
    assert without_the_words_of_the_rule(told) == dedent("""\
        serve/pool.py:20 in `Pool.step`
            return self.table.max().item()
        reported: NSL201 item-read (certain, hot)

        call `self.table.max().item()` (column 16): waits in torch 2.13 (certain)
            receiver `self.table.max()` is a 0-dim int tensor on the device (certain)
              <- serve/pool.py:11 `self.table = torch.zeros(size, dtype=torch.int64, device='cuda')`: a 1-dim int tensor on the device
            model row d2h.item: t.item()
              when: one-element CUDA tensor
              source: CUDAScalar.cu _local_scalar_dense: copy into pinned memory + stream sync. exec 2.14.1 & 2.15.0

        call `self.table.max()`: no row of the models tells of `.max()` of a 1-dim int tensor on the device

        heat: hot
            serve/pool.py:13 hot root `Pool.step` (marked hot)
            -> serve/pool.py:20 this line
        calls that could not be resolved: none in `Pool.step`
        """)


def test_a_missed_alarm_tells_which_operand_is_unknown_and_where_its_trail_ends(explain: Explain) -> None:
    told = explain(row("values.item()", "serve/work.py"))
    assert without_the_words_of_the_rule(told) == dedent("""\
        serve/work.py:2 in `read`
            return values.item()
        not reported: NSL201 item-read (possible, hot) is hidden: it is only possible, since it is not known what `values` is (`--min-confidence possible`)

        call `values.item()` (column 12): may wait in torch 2.13 (possible)
            receiver `values` is unknown
              * serve/pool.py:15 `Pool.step` passes `index` as `values`
                <- serve/pool.py:14 `index = mystery()`
                the trail ends: `other_library.mystery` is of a library, and the models do not say what it gives back
              * serve/pool.py:16 `Pool.step` passes `self.pending` as `values`
                <- serve/pool.py:23 `self.pending = extra`
                the trail ends: `extra` is a parameter of `Pool.add`: nothing in the linked project calls it by name
            model row d2h.item: t.item()
              when: one-element CUDA tensor
              source: CUDAScalar.cu _local_scalar_dense: copy into pinned memory + stream sync. exec 2.14.1 & 2.15.0

        heat: hot
            serve/pool.py:13 hot root `Pool.step` (marked hot)
            -> serve/pool.py:15 calls `read`
            -> serve/work.py:2 this line
        calls that could not be resolved: none in `read`
        """)


def test_a_debug_block_is_named_as_what_makes_a_line_cold(explain: Explain) -> None:
    told = explain(row("self.table.sum()"))
    assert "not reported: NSL201 item-read (certain, cold) is hidden: the line is cold (`--heat any`)" in told
    assert "heat: cold: `Pool.step` is hot, but this line stands under a debug switch, `if VALIDATE_STEPS`" in told


def test_an_unreached_line_names_its_callers_and_what_stops_them(explain: Explain) -> None:
    told = explain(row("self.table.min()"))
    assert "heat: unreached: no hot root reaches `Pool.check`\n" in told
    assert "<- serve/pool.py:26 `Pool.load_state` calls it: cold stop by its name (`load_*`)" in told


def test_a_suppression_is_shown_with_its_reason(explain: Explain) -> None:
    told = explain(row("self.table.min()"), "--heat", "any")
    assert "is hidden: a comment suppresses it\n" in told
    assert "suppression: serve/pool.py:29 ignore[item-read]: asked for by hand" in told


def test_a_function_without_callers_says_so(explain: Explain) -> None:
    told = explain(row("return len", "serve/work.py"))
    assert "heat: unreached: no hot root reaches `uncalled`: nothing in the linked project calls it by name" in told


def test_a_function_that_is_handed_on_as_a_value_says_where(explain: Explain) -> None:
    files = {"main.py": "import threading\n\ndef loop():\n    pass\n\nthreading.Thread(target=loop).start()\n"}
    told = explain("main.py:4", files=files)
    assert (
        "it is handed on as a value at main.py:6 `threading.Thread(target=loop)`, and such calls are not followed"
        in told
    )


def test_a_branch_for_another_platform_is_named(explain: Explain) -> None:
    files = {
        "main.py": """\
            import torch

            def step(x: torch.Tensor, is_npu: bool):  # nosync-lint: hot
                if is_npu:
                    return x.cuda().item()
            """
    }
    told = explain("main.py:5", files=files)
    assert "it stands in a branch for another platform, `if is_npu`" in told
    assert told.splitlines()[2] == "not reported: nothing on this line is known to wait; the line is cold besides"


def test_a_store_that_runs_on_the_device_says_why_it_does_not_wait(explain: Explain) -> None:
    told = explain(row("self.table[1:3]"))
    assert (
        "index write `self.table[1:3] = 0` (column 9): storing the int 0 through a slice runs on the device alone"
        in told
    )


def test_a_call_of_project_code_tells_what_waits_below(explain: Explain) -> None:
    files = {
        "main.py": """\
            import torch

            def inner():
                return torch.ones(3, device="cuda").sum().item()

            def outer():
                return inner()

            def step():  # nosync-lint: hot
                return outer()
            """
    }
    told = explain("main.py:10", files=files)
    assert "runs `outer` main.py:6" in told
    assert (
        "waits there, and is reported there: main.py:4 `torch.ones(3, device='cuda').sum().item()` in `inner`" in told
    )


def test_a_release_that_is_not_targeted_is_told(explain: Explain) -> None:
    files = {
        "main.py": 'import torch\n\ndef step():  # nosync-lint: hot\n    torch.zeros(3, device="cuda")[0] = 1\n',
        "nosync-lint.toml": 'target-torch = "2.15"\n',
    }
    told = explain("main.py:4", files=files)
    assert "it waits before torch 2.15 only, and no such release is targeted" in told


def test_unresolved_calls_of_the_function_are_listed_with_their_trails(explain: Explain) -> None:
    files = {
        "main.py": """\
            from other_library import connect

            def step():  # nosync-lint: hot
                link = connect()
                link.open()
                link.send()
                return bool(link.state)
            """
    }
    told = explain("main.py:7", files=files)
    assert "calls that could not be resolved: 2 in `step`" in told
    assert "main.py:5 `link.open()`: `link` is not known (and 1 more calls of it)" in told
    assert "<- main.py:4 `link = connect()`" in told


def test_a_line_inside_a_statement_answers_for_the_statement(explain: Explain) -> None:
    told = explain(row("    values,", "serve/work.py"))
    assert told.splitlines()[:2] == ["serve/work.py:7 in `uncalled`", "    values,"]
    assert "call `len(values)`" in told


def test_a_line_without_a_site_names_the_nearest_ones(explain: Explain) -> None:
    told = explain(row("def step"))
    assert "not reported: nothing on this line could wait" in told
    assert "nearest places that could wait: row 17 `VALIDATE_STEPS`, row 18 `self.table.sum().item()`, " in told


def test_every_line_of_a_program_is_answered(explain: Explain) -> None:
    for file in ("serve/pool.py", "serve/work.py"):
        for number in range(1, len(dedent(SERVE[file]).splitlines()) + 1):
            head, *_ = explain(f"{file}:{number}").splitlines()
            assert head.startswith(f"{file}:{number} in `")


def test_the_answer_follows_the_options_of_the_check(explain: Explain) -> None:
    place = row("self.table.max()")
    assert "NSL201 item-read (certain, hot) is hidden: its rule is not selected" in explain(place, "--select", "NSL301")
    assert "not reported: the file is not among the given paths" in explain(place, "serve/work.py")
    cold = row("self.table.sum()")
    assert "reported: NSL201 item-read (certain, cold)" in explain(cold, "--heat", "any")


def test_the_column_of_a_report_may_follow(explain: Explain) -> None:
    place = row("self.table.max()")
    assert explain(f"{place}:16") == explain(place)


def test_json_holds_the_same_answer(explain: Explain) -> None:
    told = json.loads(explain(row("self.table.max()"), "--output-format", "json"))
    assert told["schema_version"] == 1
    assert told["answer"] == "reported: NSL201 item-read (certain, hot)"
    assert told["outcomes"][0]["finding"]["location"] == {"row": 20, "column": 16}
    site = next(one for one in told["facts"]["sites"] if one["waits"])
    assert site["waits"][0]["row"] == "d2h.item"
    assert site["operands"][0]["steps"][0]["row"] == 11
    assert told["facts"]["heat"]["heat"] == "hot"


WRONG = {
    "serve/pool.py": "--explain takes FILE:LINE, such as package/module.py:12, not 'serve/pool.py'",
    "serve/pool.py:0": "--explain takes FILE:LINE",
    "serve/pool.py:x": "--explain takes FILE:LINE",
    ":3": "--explain takes FILE:LINE",
    "serve/pol.py:3": "serve/pol.py: no such file, did you mean serve/pool.py?",
    "serve/pool.py:900": "serve/pool.py has 29 lines, so there is no line 900 to explain",
    "left/out.py:1": "left/out.py: is not linked: it lies outside the working directory, or is excluded or ignored by git",
}


@pytest.mark.parametrize("place", WRONG)
def test_a_question_that_has_no_answer_ends_with_2(explain: Explain, place: str) -> None:
    files = {**SERVE, "left/out.py": "x = 1\n", "nosync-lint.toml": 'exclude = ["left"]\n'}
    assert WRONG[place] in explain(place, files=files, code=2)


def test_terminal_output_holds_every_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, explain: Explain) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    place = row("values.item()", "serve/work.py")
    plain = explain(place)
    colored = explain(place, "--color", "always")
    assert "\x1b[" in colored
    import re

    bare = re.sub(r"\x1b\[[0-9;]*m", "", colored)
    assert [line.rstrip() for line in bare.splitlines()] == plain.splitlines()


def asked(paths: list[str], question: Callable[[pipeline.Linked], Any], settings: Settings) -> Any:
    return pipeline.ask(question, paths, settings, jobs=1, cache=False)


def explained(linked: pipeline.Linked, settings: Settings, finding: Finding) -> Explanation:
    told = pipeline.explanation_of(linked, settings, finding.filename, finding.span.row)
    for color in (False, True):
        write_explanation(told, io.StringIO(), color=color)
    return told


def test_every_finding_of_the_demo_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    settings = load_config(ROOT / "demo" / "pyproject.toml")

    def question(linked: pipeline.Linked) -> None:
        findings = pipeline.report_of(linked, settings, None, Before(), 0.0).findings
        assert len(findings) >= 5
        for finding in findings:
            told = explained(linked, settings, finding)
            assert told.answer.startswith("reported: ")
            assert finding in [one.finding for one in told.outcomes] or finding.group
            assert finding.code in told.answer

    asked(["demo"], question, settings)


def test_a_finding_of_every_rule_in_the_samples_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    settings = Settings(heat="any", min_confidence="possible", target_torch=">=2.9")

    def question(linked: pipeline.Linked) -> None:
        by_rule = {
            finding.code: finding for finding in pipeline.report_of(linked, settings, None, Before(), 0.0).findings
        }
        assert len(by_rule) > 20
        for code, finding in by_rule.items():
            told = explained(linked, settings, finding)
            assert told.answer.startswith("reported: "), finding
            assert code in told.answer

    asked(["fixtures"], question, settings)


def test_a_finding_in_the_configuration_is_explained(explain: Explain) -> None:
    told = explain("nosync-lint.toml:1", files={"main.py": "x = 1\n", "nosync-lint.toml": 'hot = ["Nowhere.step"]\n'})
    assert "reported: NSL003 unknown-root (certain)" in told


def test_the_order_of_files_changes_nothing(monkeypatch: pytest.MonkeyPatch, explain: Explain) -> None:
    places = [row("values.item()", "serve/work.py"), row("self.table.min()"), row("read(index)")]
    first = [explain(place) for place in places]

    def backwards(*given: Any) -> Discovered:
        found = discover(*given)
        return replace(found, files=found.files[::-1])

    monkeypatch.setattr(pipeline, "discover", backwards)
    assert [explain(place) for place in places] == first


def test_heat_is_told_for_every_finding(explain: Explain) -> None:
    told = json.loads(explain(row("self.table.min()"), "--output-format", "json"))
    assert told["facts"]["heat"]["heat"] == Heat.UNREACHED
    assert told["outcomes"][0]["hidden"] == "a comment suppresses it and the line is unreached (`--heat any`)"
