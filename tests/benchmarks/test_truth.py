"""Labels against findings: what counts as found, missed, false and rightly silent, and where it is written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.corpus import rows
from benchmarks.document import write_part
from benchmarks.truth.labels import Labels, load
from benchmarks.truth.scoring import Outcome, flags, score, tally

SITE = {
    "package": "kit",
    "version": "1.0",
    "file": "kit/a.py",
    "line": 10,
    "pattern": "b",
    "sync_on_cuda": "yes",
    "context": "hot",
    "how_decidable": "local",
    "reason": "",
}


def finding(code: str, row: int, end_row: int | None = None, file: str = "kit/a.py") -> dict[str, Any]:
    return {"filename": file, "code": code, "location": {"row": row}, "end_location": {"row": end_row or row}}


@pytest.fixture
def labels(tmp_path: Path) -> Any:
    def made(*entries: dict[str, Any]) -> Labels:
        (tmp_path / "labels.json").write_text(json.dumps(entries))
        (one,) = load(tmp_path)
        return one

    return made


def outcomes(one: Labels, *findings: dict[str, Any]) -> list[Outcome]:
    return [scored.outcome for scored in score(one, flags(findings))]


def test_a_site_that_waits_is_found_by_a_rule_for_its_pattern_alone(labels: Any) -> None:
    assert outcomes(labels(SITE), finding("NSL201", 10)) == [Outcome.FOUND]
    assert outcomes(labels(SITE), finding("NSL202", 10)) == [Outcome.MISSED]
    assert outcomes(labels(SITE), finding("NSL201", 10, file="kit/b.py")) == [Outcome.MISSED]


def test_a_finding_covers_all_its_rows_and_no_other(labels: Any) -> None:
    assert outcomes(labels(SITE), finding("NSL201", 8, 12)) == [Outcome.FOUND]
    assert outcomes(labels(SITE), finding("NSL201", 11, 12)) == [Outcome.MISSED]
    assert outcomes(labels({**SITE, "attr_line": 12}), finding("NSL201", 11, 12)) == [Outcome.FOUND]


def test_a_report_of_a_site_that_does_not_wait_is_a_false_alarm(labels: Any) -> None:
    site = {**SITE, "sync_on_cuda": "no"}
    assert outcomes(labels(site), finding("NSL201", 10)) == [Outcome.FALSE]
    assert outcomes(labels(site)) == [Outcome.SILENT]


@pytest.mark.parametrize("change", [{"sync_on_cuda": "conditional"}, {"sync_on_cuda": "unknown"}, {"platform": "npu"}])
def test_sites_that_depend_or_never_run_on_cuda_are_left_out(labels: Any, change: dict[str, str]) -> None:
    assert outcomes(labels({**SITE, **change}), finding("NSL201", 10)) == []


def test_a_file_below_the_package_is_found_below_the_distribution(labels: Any) -> None:
    one = labels({**SITE, "file": "a.py"})
    assert outcomes(one, finding("NSL201", 10)) == [Outcome.FOUND]
    assert one.below_package
    assert not labels(SITE).below_package


def test_patterns_in_words_have_their_own_rules_and_the_rest_any_of_families_1_to_4(labels: Any) -> None:
    mask = {**SITE, "pattern": "other:mask write of a tensor (2-D)"}
    assert outcomes(labels(mask), finding("NSL303", 10)) == [Outcome.FOUND]
    assert outcomes(labels(mask), finding("NSL302", 10)) == [Outcome.MISSED]
    rest = {**SITE, "pattern": "other:iteration"}
    assert outcomes(labels(rest), finding("NSL401", 10)) == [Outcome.FOUND]
    assert outcomes(labels(rest), finding("NSL501", 10)) == [Outcome.MISSED]


def test_in_an_exhaustive_file_every_other_report_is_false(labels: Any) -> None:
    site = {key: value for key, value in SITE.items() if key not in ("package", "version", "file")}
    whole = {"package": "kit", "version": "1.0", "file": "kit/a.py", "exhaustive": True, "sites": [site]}
    found = [finding("NSL201", 10), finding("NSL202", 20), finding("NSL105", 21), finding("NSL501", 22)]
    assert outcomes(labels(whole), *found) == [Outcome.FOUND, Outcome.FALSE]
    assert outcomes(labels({**whole, "exhaustive": False}), *found) == [Outcome.FOUND]


def test_precision_and_recall_are_shares_of_what_was_reported_and_of_what_waits(labels: Any) -> None:
    entries = [{**SITE, "line": row, "sync_on_cuda": "yes" if row < 4 else "no"} for row in range(1, 6)]
    total = tally(score(labels(*entries), flags([finding("NSL201", row) for row in (1, 4)])))
    assert (total.precision, total.recall) == (1 / 2, 1 / 3)
    assert tally([]).precision is None


def test_the_rows_of_the_corpus_table_are_read() -> None:
    printed = """\
a case [local] missed [] false []
kind                   cases found compl. lines  hit false broken
to-cpu                     3     3      2     5    4     1      0
contracts and C++         10     0      0    18    2     0      0
traps: 20, false alarms on them: 2
"""
    assert list(rows(printed)) == [
        ("to-cpu", "3", "3", "2", "5", "4", "1", "0"),
        ("contracts and C++", "10", "0", "0", "18", "2", "0", "0"),
    ]


def test_a_part_of_a_document_is_replaced_and_the_rest_stays(tmp_path: Path) -> None:
    document = tmp_path / "page.md"
    document.write_text("above\n<!-- one: written by a command -->\nold\n<!-- end of one -->\nbelow\n")
    for text in ("first", "second"):
        write_part(document, "one", text)
    assert document.read_text() == (
        "above\n<!-- one: written by a command -->\n\nsecond\n\n<!-- end of one -->\nbelow\n"
    )
    with pytest.raises(ValueError, match=r"page\.md has no part two"):
        write_part(document, "two", "text")
