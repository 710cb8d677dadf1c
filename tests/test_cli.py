"""The command line: what it prints, and the exit codes 0, 1 and 2."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from nosync_lint import __version__
from nosync_lint.cli import main
from nosync_lint.config import KEYS
from nosync_lint.registry import rules

FLAGGED = "import torch\n\ndef step(ids: torch.Tensor):  # nosync-lint: hot\n    return ids.unique()\n"
CLEAN = "x = 1\n"
COLD = "import torch\n\ndef step(): pass  # nosync-lint: hot\n\ndef build():\n    return torch.arange(3, device='cuda').unique()\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with one finding, which is the working directory."""
    for name in (
        "NOSYNC_LINT_CACHE_DIR",
        "NOSYNC_LINT_NO_CACHE",
        "NOSYNC_LINT_OUTPUT_FORMAT",
        "FORCE_COLOR",
        "NO_COLOR",
    ):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "nosync-lint.toml").touch()
    (tmp_path / "hot.py").write_text(FLAGGED)
    (tmp_path / "clean.py").write_text(CLEAN)
    monkeypatch.chdir(tmp_path)
    return tmp_path


Capture = pytest.CaptureFixture[str]


def check(*arguments: str) -> int:
    return main(["check", "-j", "1", "--no-cache", *arguments])


def found(capsys: Capture) -> list[str]:
    """Rows of the findings in a JSON report."""
    return [f"{f['filename']}:{f['location']['row']}" for f in json.loads(capsys.readouterr().out)["findings"]]


def test_findings_exit_with_1(project: Path, capsys: Capture) -> None:
    assert check(".") == 1
    assert "hot.py:4:12: NSL301 dedup-on-device" in capsys.readouterr().out


def test_a_clean_run_exits_with_0(project: Path) -> None:
    assert check("clean.py") == 0


def test_without_a_path_the_working_directory_is_linted(project: Path) -> None:
    assert check() == 1


def test_a_folder_without_files_is_clean(project: Path) -> None:
    (project / "empty").mkdir()
    assert check("empty") == 0


def test_exit_zero_reports_and_exits_with_0(project: Path, capsys: Capture) -> None:
    assert check("--exit-zero", ".") == 0
    assert "NSL301" in capsys.readouterr().out


WRONG = {
    ("check", "missing"): "missing: no such file or folder; give a path that exists",
    ("check", "--select", "NSL999"): "no rule is called `NSL999`",
    ("check", "--select", "dedup-on-devise"): "no rule is called `dedup-on-devise`, did you mean `dedup-on-device`?",
    ("check", "--ignore", "scalar-index-wirte"): "did you mean `scalar-index-write`?",
    ("check", "--config", "hoot=[]"): "unknown key `hoot`, did you mean `hot`? Known keys: select, ",
    ("check", "--config", "zzz=[]"): "unknown key `zzz`; known keys: select, ",
    ("check", "--config", "missing.toml"): "missing.toml: cannot be read",
    ("check", "--target-torch", "1.2"): "target torch 1.2 is older than the oldest release",
    ("check", "--target-torch", "new"): "target torch `new` is no release or range",
    (
        "check",
        "-o",
        "no/such/folder/report.txt",
    ): "no/such/folder/report.txt: cannot be written: No such file or directory",
    ("check", "--select", "NSLX"): "no rule is called `NSLX`; `nosync-lint rule --all` lists them",
    (
        "check",
        "--select",
        "NSL3O1",
    ): "no rule is called `NSL3O1`, did you mean `NSL301`? `nosync-lint rule --all` lists",
    ("check", "--hot", ""): "--hot is empty; give it a value or leave it out",
    ("check", "--hot", "step", "--hot", " "): "--hot is empty",
    ("check", "--select", ","): "--select is empty",
    ("check", "--target-torch", ""): "--target-torch is empty",
    ("check", "--config", ""): "--config is empty",
    ("graph", "--root", ""): "--root is empty",
    (
        "check",
        "--isolated",
        "--config",
        "a.toml",
    ): "--isolated reads no configuration file and --config a.toml names one",
    ("rule", "NSL998"): "no rule is called `NSL998`",
    ("rule",): "name a rule, or give --all",
}


@pytest.mark.parametrize("arguments", WRONG, ids=" ".join)
def test_wrong_usage_exits_with_2_and_one_line_that_names_it(
    project: Path, capsys: Capture, arguments: tuple[str, ...]
) -> None:
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("nosync-lint: error: ")
    assert WRONG[arguments] in captured.err
    assert captured.err.count("\n") == 1


@pytest.mark.parametrize(
    "arguments", [("check", "--heat", "boiling"), ("check", "--nope"), ("nope",), ()], ids=" ".join
)
def test_an_option_that_does_not_exist_exits_with_2(project: Path, capsys: Capture, arguments: tuple[str, ...]) -> None:
    with pytest.raises(SystemExit) as raised:
        main(arguments)
    assert raised.value.code == 2
    assert "usage: nosync-lint" in capsys.readouterr().err


NEAR = {
    ("chek",): "invalid choice: 'chek', did you mean `check`? (choose from check, graph, ",
    ("config", "het"): "invalid choice: 'het', did you mean `heat`? (choose from select, ",
    ("check", "--heat", "hott"): "--heat: invalid choice: 'hott', did you mean `hot`? (choose from hot, warm, any)",
    ("check", "--heat", "boiling"): "--heat: invalid choice: 'boiling' (choose from hot, warm, any)",
    ("check", "-j", "-3"): "-j/--jobs: must be a number from 0, not '-3'",
}


@pytest.mark.parametrize("arguments", NEAR, ids=" ".join)
def test_a_word_that_cannot_stand_there_is_told_with_the_nearest(
    project: Path, capsys: Capture, arguments: tuple[str, ...]
) -> None:
    with pytest.raises(SystemExit) as raised:
        main(arguments)
    assert raised.value.code == 2
    assert NEAR[arguments] in capsys.readouterr().err


def test_isolated_goes_with_a_key_on_the_command_line(project: Path) -> None:
    assert check("--isolated", "--config", 'heat="any"', ".") == 1


@pytest.mark.parametrize("name", ["nosync-lint.toml", ".nosync-lint.toml"])
def test_what_has_the_name_of_a_configuration_and_is_no_file_is_an_error(
    project: Path, capsys: Capture, name: str
) -> None:
    (project / "nosync-lint.toml").unlink(missing_ok=True)
    (project / name).mkdir()
    assert check(".") == 2
    told = f"{name}: is the name of a configuration, and no file; remove or rename it"
    assert told in capsys.readouterr().err
    assert check("--isolated", ".") == 1
    (project / name).rmdir()
    (project / name).symlink_to("gone.toml")
    assert check(".") == 2


ROWS = [(b"# caf\xe9\n", 1), (b"\n# caf\xe9\n", 2), (b"\n\n\n# caf\xe9\n", 4), (b"\n# coding: zork\n", 2)]


@pytest.mark.parametrize(("content", "row"), ROWS)
def test_the_row_that_cannot_be_decoded_is_told(project: Path, capsys: Capture, content: bytes, row: int) -> None:
    (project / "latin.py").write_bytes(content)
    assert check("--no-cache", "latin.py") == 1
    assert f"latin.py:{row}:1: NSL000" in capsys.readouterr().out


def test_a_configuration_error_exits_with_2(project: Path, capsys: Capture) -> None:
    (project / "nosync-lint.toml").write_text("hott = []\n")
    assert check(".") == 2
    assert "unknown key `hott`, did you mean `hot`?" in capsys.readouterr().err
    assert check("--isolated", ".") == 1


def test_a_wrong_environment_variable_is_named(project: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOSYNC_LINT_NO_CACHE", "perhaps")
    assert main(["check", "."]) == 2
    assert "NOSYNC_LINT_NO_CACHE must be 1, 0, true or false, not 'perhaps'" in capsys.readouterr().err


def test_a_rule_that_crashes_is_named_and_the_others_go_on(
    project: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "hot.py").write_text(FLAGGED.replace("    return", "    ids.cuda()[ids.argsort()] = -1\n    return"))
    (crashing,) = [type(rule) for rule in rules() if rule.code == "NSL101"]

    def crash(self: object, site: object, program: object) -> None:
        raise KeyError("no such thing")

    monkeypatch.setattr(crashing, "judge", crash)
    assert check("--exit-zero", ".") == 2
    told = "".join(capsys.readouterr())
    assert "rule NSL101 scalar-index-write crashed at hot.py:4: KeyError: 'no such thing'" in told
    assert "NSL301" in told


def test_select_and_ignore_take_codes_starts_of_codes_and_slugs(project: Path) -> None:
    assert [check("--select", word) for word in ("NSL301", "NSL3", "nsl", "dedup-on-device", "NSL1,NSL301")] == [1] * 5
    assert [check("--select", word) for word in ("NSL1", "scalar-index-write")] == [0] * 2
    assert [check("--ignore", word) for word in ("NSL301", "NSL3", "dedup-on-device")] == [0] * 3
    assert check("--select", "NSL3", "--ignore", "NSL301") == 0


def test_the_command_line_goes_before_the_configuration(project: Path) -> None:
    (project / "nosync-lint.toml").write_text("select = ['NSL1']\nmin-confidence = 'certain'\n")
    assert check(".") == 0
    assert check("--select", "NSL3", ".") == 0
    assert check("--select", "NSL3", "--min-confidence", "likely", ".") == 1


def test_excludes_and_roots_are_added_to_the_configured_ones(project: Path, capsys: Capture) -> None:
    (project / "nosync-lint.toml").write_text("exclude = ['hot.py']\nhot = ['build']\n")
    (project / "also.py").write_text(FLAGGED)
    (project / "cold.py").write_text(COLD.replace("  # nosync-lint: hot", ""))
    check("--exclude", "also.py", "--hot", "step", "--output-format", "json")
    assert found(capsys) == ["cold.py:6"]


def test_heat_decides_what_is_shown_and_the_rest_is_counted(project: Path, capsys: Capture) -> None:
    (project / "hot.py").write_text(COLD)
    assert check(".") == 0
    assert "unreached" in capsys.readouterr().out
    assert check("--heat", "any", ".") == 1


def test_without_any_root_every_heat_is_shown_and_a_note_says_so(project: Path, capsys: Capture) -> None:
    (project / "hot.py").write_text(COLD.replace("  # nosync-lint: hot", ""))
    assert check(".") == 1
    assert "no hot root matches anything here" in capsys.readouterr().out


def test_a_root_that_names_nothing_is_told(project: Path, capsys: Capture) -> None:
    check("--hot", "Loop.step", ".")
    assert "--hot Loop.step names no function of this project" in capsys.readouterr().out


def test_a_root_of_the_command_line_is_no_configured_name(project: Path, capsys: Capture) -> None:
    check("--hot", "Loop.step", "--select", "NSL003", "--output-format", "json", ".")
    assert found(capsys) == []


def test_the_target_decides(project: Path) -> None:
    (project / "hot.py").write_text(
        "import torch\ndef step(ids: torch.LongTensor):  # nosync-lint: hot\n    torch.zeros(3, device='cuda')[ids] = -1\n"
    )
    assert check("--target-torch", "2.14", ".") == 1
    assert check("--target-torch", "2.15", ".") == 0


def test_a_report_goes_to_a_file(project: Path, capsys: Capture) -> None:
    assert check("-o", "report.json", "--output-format", "json", ".") == 1
    assert capsys.readouterr().out == ""
    assert [f["code"] for f in json.loads((project / "report.json").read_text())["findings"]] == ["NSL301"]


def test_the_format_may_come_from_the_environment(
    project: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOSYNC_LINT_OUTPUT_FORMAT", "json")
    check(".")
    assert found(capsys) == ["hot.py:4"]


def test_a_format_that_there_is_not_is_refused(project: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOSYNC_LINT_OUTPUT_FORMAT", "pdf")
    assert check(".") == 2
    assert "NOSYNC_LINT_OUTPUT_FORMAT must be one of full, concise, " in capsys.readouterr().err


def test_an_explanation_is_no_page(project: Path, capsys: Capture) -> None:
    assert check("--explain", "hot.py:4", "--output-format", "html") == 2
    assert "an explanation is written as full or json, not as html" in capsys.readouterr().err


def test_color_is_for_terminals_unless_it_is_asked_for(
    project: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    check(".")
    assert "\x1b[" not in capsys.readouterr().out
    check("--color", "always", ".")
    assert "\x1b[" in capsys.readouterr().out
    monkeypatch.setenv("FORCE_COLOR", "1")
    check(".")
    assert "\x1b[" in capsys.readouterr().out
    monkeypatch.setenv("NO_COLOR", "1")
    check(".")
    assert "\x1b[" not in capsys.readouterr().out


def test_statistics_count_findings_per_rule(project: Path, capsys: Capture) -> None:
    check("--statistics", ".")
    assert "dedup-on-device" in capsys.readouterr().out


def test_a_run_writes_its_cache_and_nothing_else(project: Path) -> None:
    before = {path.name for path in project.iterdir()}
    main(["check", "-j", "1", "."])
    assert {path.name for path in project.iterdir()} - before == {".nosync_lint_cache"}
    assert main(["clean"]) == 0
    assert {path.name for path in project.iterdir()} == before
    main(["check", "-j", "1", "--cache-dir", "elsewhere", "."])
    assert {path.name for path in project.iterdir()} - before == {"elsewhere"}


def test_clean_says_where_no_cache_is(project: Path, capsys: Capture) -> None:
    assert main(["clean", "--cache-dir", "nowhere"]) == 0
    assert capsys.readouterr().out.endswith("nowhere: no cache there\n")


def test_version_is_printed(capsys: Capture) -> None:
    assert main(["version"]) == 0
    assert capsys.readouterr().out == f"nosync-lint {__version__}\n"


def test_every_rule_is_listed(capsys: Capture) -> None:
    assert main(["rule", "--all"]) == 0
    listed = [line.split()[:2] for line in capsys.readouterr().out.splitlines()]
    assert listed == [[rule.code, rule.slug()] for rule in rules()]


@pytest.mark.parametrize("name", ["NSL101", "nsl101", "scalar-index-write"])
def test_a_rule_is_explained(capsys: Capture, name: str) -> None:
    assert main(["rule", name]) == 0
    text = capsys.readouterr().out
    assert text.startswith("NSL101 scalar-index-write (error, since ")
    assert "Instead\n" in text


def test_rules_are_given_as_json(capsys: Capture) -> None:
    assert main(["rule", "--all", "--output-format", "json"]) == 0
    assert [row["code"] for row in json.loads(capsys.readouterr().out)] == [rule.code for rule in rules()]
    assert main(["rule", "NSL301", "--output-format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["name"] == "dedup-on-device"


def test_every_configuration_key_is_listed_with_its_default(capsys: Capture) -> None:
    assert main(["config"]) == 0
    listed = dict(line.split(" = ") for line in capsys.readouterr().out.splitlines())
    assert tuple(listed) == KEYS
    assert listed["heat"] == '"hot"'
    assert main(["config", "max-file-size"]) == 0
    assert capsys.readouterr().out.startswith("max-file-size = 10000000\n\nbytes; ")


def test_a_reader_that_goes_away_is_no_crash(project: Path) -> None:
    (project / "hot.py").write_text(FLAGGED + "    ids.unique()\n" * 3000)
    command = f"{sys.executable} -m nosync_lint check --no-cache -j 1 . | head -n 1"
    done = subprocess.run(["sh", "-c", command], cwd=project, capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout.count("\n") == 1
    assert done.stderr == ""


def test_a_module_run_is_the_command(project: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "nosync_lint", "check", "--no-cache", "--quiet", "clean.py"],
        cwd=project, env=dict(os.environ), capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


BAD = {
    "syntax.py": (b"def f(:\n", "cannot be parsed as Python"),
    "nul.py": (b"x = 1\n\0", "contains a NUL byte"),
    "latin.py": (b"x = 1\ny = 2\nz = '\xfc'\n", "is not valid utf-8: byte 0xfc"),
    "cookie.py": (b"# coding: klingon\n", "has an unusable encoding"),
    "deep.py": (b"x = " + b"(" * 5000 + b")" * 5000, "nested"),
    "minus.py": (b"x = " + b"-" * 50000 + b"1", "nested too deeply"),
    "big.py": (b"#" * 200, "raise the option or exclude the file"),
    "kernel.cu": (b"\xff\xfe__global__", "is not valid utf-8"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_file_that_cannot_be_used_is_a_finding_and_the_rest_goes_on(
    project: Path, capsys: Capture, name: str
) -> None:
    data, told = BAD[name]
    (project / name).write_bytes(data)
    (project / "nosync-lint.toml").write_text(f"max-file-size = {150 if name == 'big.py' else 10**6}\n")
    assert check("--output-format", "json", ".") == 1
    findings = {f["filename"]: f for f in json.loads(capsys.readouterr().out)["findings"]}
    assert set(findings) == {name, "hot.py"}
    assert findings[name]["code"] == "NSL000"
    assert told in json.dumps(findings[name])


def test_a_link_that_leads_back_is_no_trouble(project: Path, capsys: Capture) -> None:
    os.symlink(".", project / "again")
    check("--output-format", "json", ".")
    assert found(capsys) == ["hot.py:4"]


def test_workers_caches_and_the_order_of_paths_change_nothing(project: Path, capsys: Capture) -> None:
    for number in range(20):
        (project / f"m{number}.py").write_text(FLAGGED.replace("step", f"step{number}") + f"\n# {number}\n" * 2000)
    reports = []
    for arguments in (
        ["-j", "1", "--no-cache", "."],
        ["-j", "2", "."],
        ["-j", "2", "."],
        ["-j", "1", *sorted(os.listdir("."), reverse=True)],
    ):
        main(["check", "--output-format", "json", *arguments])
        reports.append(json.loads(capsys.readouterr().out)["findings"])
    assert len(reports[0]) == 21
    assert [report == reports[0] for report in reports] == [True] * 4
