"""What the tool writes about real programs is valid: for the demo, and for samples that bring every kind of finding."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nosync_lint.config import Settings, load_config
from nosync_lint.pipeline import run
from nosync_lint.report import Report
from nosync_lint.source import CUDA_SUFFIXES
from tests.report.reports import FORMS, written
from tests.report.schemas import is_valid

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = (
    "demo",
    "fixtures/unreadable-file/damaged_among_others",
    "fixtures/unknown-root/flagged",
    "fixtures/unused-suppression",
    "fixtures/unexplained-suppression",
    "fixtures/scalar-index-write",
    "fixtures/lost-segment-override",
    "fixtures/cxx-host-sync",
    "fixtures/over-strict-matcher",
)
SARIF_TOOLS = shutil.which("sarif")


@pytest.fixture(scope="module", params=PROGRAMS)
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The report on a program, in the folder of a repository that holds it."""
    root = tmp_path_factory.mktemp("repository")
    (root / ".git").mkdir()
    folder = root / "program"
    shutil.copytree(ROOT / request.param, folder, ignore=shutil.ignore_patterns("__pycache__"))
    config = folder / "nosync-lint.toml"
    settings = load_config(config) if config.exists() else Settings()
    config.touch()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        yield run(["."], replace(settings, heat="any", min_confidence="possible"), jobs=1, cache=False)


@pytest.mark.parametrize("form", ["sarif", "gitlab", "rdjson"])
def test_json_is_valid_by_its_schema(program: Report, form: str) -> None:
    is_valid(form, json.loads(written(program, form)))


def test_junit_is_valid_by_its_schema(program: Report) -> None:
    is_valid("junit", written(program, "junit"))


def test_every_finding_is_in_every_format(program: Report) -> None:
    assert program.findings
    told = {form: written(program, form) for form in FORMS}
    assert len(json.loads(told["json"])["findings"]) == len(program.findings)
    assert len(told["json-lines"].splitlines()) == len(told["pylint"].splitlines()) == len(program.findings)
    assert len(json.loads(told["gitlab"])) == len(program.findings)
    assert len({one["fingerprint"] for one in json.loads(told["gitlab"])}) == len(program.findings)
    assert len(json.loads(told["rdjson"])["diagnostics"]) == len(program.findings)
    results = json.loads(told["sarif"])["runs"][0]["results"]
    assert len(results) == len(program.findings) + len(program.suppressed)
    assert told["junit"].count("<testcase ") == len(program.findings)
    assert told["azure"].count("##vso[task.logissue ") == len(program.findings)
    assert told["markdown"].count("\n- ") == len(program.findings)
    assert told["concise"].count(": NSL") == told["full"].count(": NSL") == len(program.findings)


def test_a_name_is_that_in_the_repository_where_a_service_knows_nothing_else(program: Report) -> None:
    (result, *_) = json.loads(written(program, "sarif"))["runs"][0]["results"]
    uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    names = {
        uri,
        json.loads(written(program, "gitlab"))[0]["location"]["path"],
        json.loads(written(program, "rdjson"))["diagnostics"][0]["location"]["path"],
    }
    assert names == {f"program/{program.findings[0].filename}"}


def test_regions_of_sarif_lie_in_the_text(program: Report) -> None:
    for finding in program.findings:
        lines, span = program.sources[finding.filename], finding.span
        if lines and Path(finding.filename).suffix in {".py", *CUDA_SUFFIXES}:
            assert 1 <= span.row <= span.end_row <= len(lines)
            assert 1 <= span.column <= len(lines[span.row - 1]) + 1
            assert 1 <= span.end_column <= len(lines[span.end_row - 1]) + 1


@pytest.mark.parametrize("program", ["demo", "fixtures/unused-suppression"], indirect=True)
@pytest.mark.skipif(SARIF_TOOLS is None, reason="sarif-tools is not installed: dependency group `consumers`")
def test_sarif_tools_reads_the_log_and_counts_the_same(program: Report, tmp_path: Path) -> None:
    log, table = tmp_path / "log.sarif", tmp_path / "log.csv"
    log.write_text(written(program, "sarif"), encoding="utf-8")
    assert SARIF_TOOLS is not None
    done = subprocess.run(
        [SARIF_TOOLS, "csv", str(log), "--output", str(table)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    rows = table.read_text(encoding="utf-8").splitlines()[1:]
    assert len(rows) == len(program.findings) + len(program.suppressed)
    assert all(row.startswith("nosync-lint,") for row in rows)


def test_a_report_is_written_without_what_only_tests_have() -> None:
    code = (
        "import sys; from nosync_lint.report import Report; from nosync_lint.report.formats import FORMATS, Style, write\n"
        "import io\nfor form in FORMATS: write(Report(()), form, io.StringIO(), Style())\n"
        "print(sorted({'jsonschema', 'xmlschema', 'libcst', 'torch', 'rich'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "[]\n"
