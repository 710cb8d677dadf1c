"""The comparison of the guard with a recording runtime over torch's operations, on records written by hand."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest

from benchmarks.guard_sweep.__main__ import UNDER_GUARD, Reason, reasons, told, unexplained
from benchmarks.guard_sweep.agreement import Outcome, Verdict, compare, summed
from benchmarks.recorded import recorded

FREE, WAITS = {"waits": 0, "pageable": 0, "error": ""}, {"waits": 2, "pageable": 0, "error": ""}
RAISES, WAITS_AND_RAISES = {**FREE, "error": "RuntimeError: got 12"}, {**WAITS, "error": "RuntimeError: got 12"}
OUTLINE = "float32[5, 5]"


def record(*samples: dict[str, Any], torch: str = "2.13.0+cpu") -> dict[str, Any]:
    return {"torch": torch, "operations": {"prod": {"samples": [{"outline": OUTLINE, **one} for one in samples]}}}


def verdicts(guard: dict[str, Any], oracle: dict[str, Any]) -> list[tuple[str, Verdict, bool, str]]:
    outcomes = compare(record(guard), record(oracle, torch="2.13.0+cu130"))
    return [(one.direction, one.verdict, one.waits, one.note) for one in outcomes]


def test_directions_are_judged_apart() -> None:
    assert verdicts({"forward": FREE, "backward": WAITS}, {"forward": FREE, "backward": FREE}) == [
        ("forward", Verdict.AGREE, False, ""),
        ("backward", Verdict.GUARD_ONLY, True, OUTLINE),
    ]
    assert verdicts({"forward": FREE}, {"forward": WAITS}) == [("forward", Verdict.ORACLE_ONLY, True, OUTLINE)]
    assert verdicts({"forward": {**WAITS, "waits": 1}}, {"forward": WAITS}) == [("forward", Verdict.AGREE, True, "")]


@pytest.mark.parametrize(
    ("guard", "oracle", "note"),
    [
        (RAISES, FREE, "raises under the guard: RuntimeError: got N"),
        (FREE, RAISES, "raises on the recording runtime: RuntimeError: got N"),
        (RAISES, RAISES, "raises on both sides: RuntimeError: got N"),
    ],
)
def test_what_raises_before_it_waits_cannot_be_compared(
    guard: dict[str, Any], oracle: dict[str, Any], note: str
) -> None:
    assert verdicts({"forward": guard}, {"forward": oracle}) == [("forward", Verdict.NOT_COMPARABLE, False, note)]


def test_what_raises_after_it_waited_has_waited() -> None:
    assert verdicts({"forward": WAITS}, {"forward": WAITS_AND_RAISES}) == [("forward", Verdict.AGREE, True, "")]
    (found,) = verdicts({"forward": FREE}, {"forward": WAITS_AND_RAISES})
    assert found[1] is Verdict.ORACLE_ONLY


def test_a_backward_on_one_side_only_cannot_be_compared() -> None:
    found = verdicts({"forward": WAITS, "backward": FREE}, {"forward": WAITS_AND_RAISES})
    assert found[1] == ("backward", Verdict.NOT_COMPARABLE, False, "no backward on the recording runtime")


def test_an_operation_whose_process_died_cannot_be_compared() -> None:
    died = {"torch": "2.13.0+cu130", "operations": {"prod": {"samples": [], "died": "it took too long"}}}
    (found,) = compare(record({"forward": FREE}), died)
    assert (found.verdict, found.note) == (Verdict.NOT_COMPARABLE, "on the recording runtime: it took too long")


def test_records_of_other_releases_or_samples_are_refused() -> None:
    with pytest.raises(ValueError, match=r"the guard ran on torch 2\.13\.0\+cpu, the recording runtime on 2\.14\.1"):
        list(compare(record(), record(torch="2.14.1")))
    with pytest.raises(ValueError, match="prod: other samples"):
        list(compare(record({"forward": FREE}), record({"outline": "float32[3]", "forward": FREE})))


def outcome(operation: str, verdict: Verdict, waits: bool = True) -> Outcome:
    return Outcome(operation, "forward", verdict, waits, OUTLINE)


def test_an_operation_is_as_bad_as_its_worst_sample() -> None:
    (disagrees, compared, neither) = summed(
        [
            outcome("a", Verdict.AGREE),
            outcome("a", Verdict.ORACLE_ONLY),
            outcome("b", Verdict.NOT_COMPARABLE, False),
            outcome("b", Verdict.AGREE, False),
            outcome("c", Verdict.NOT_COMPARABLE, False),
        ]
    )
    assert (disagrees.verdict, disagrees.notes) == (Verdict.ORACLE_ONLY, (OUTLINE,))
    assert (compared.verdict, compared.waits) == (Verdict.AGREE, False)
    assert neither.verdict is Verdict.NOT_COMPARABLE


def test_every_disagreement_needs_a_reason_and_every_reason_a_disagreement() -> None:
    sums = summed([outcome("a", Verdict.ORACLE_ONLY), outcome("b", Verdict.AGREE)])
    known = Reason("a", "forward", Verdict.ORACLE_ONLY, "told")
    assert unexplained(sums, [known]) == []
    assert unexplained(sums, []) == [f"without a reason: a, forward, {Verdict.ORACLE_ONLY}"]
    assert unexplained(sums, [known, known._replace(verdict=Verdict.GUARD_ONLY)]) == [
        f"no longer so: a, forward, {Verdict.GUARD_ONLY}"
    ]


def test_the_document_counts_and_lists() -> None:
    outcomes = [outcome("a", Verdict.ORACLE_ONLY), outcome("b", Verdict.AGREE), outcome("b", Verdict.AGREE, False)]
    text = told(outcomes, summed(outcomes), [Reason("a", "forward", Verdict.ORACLE_ONLY, "the reason")])
    assert "| samples, forward | 3 | 2 | 1 | 1 | 0 | 1 | 66.67% | 0 |" in text
    assert "| operations, both | 2 | 1 | 1 | 0 | 0 | 1 | 50.00% | 0 |" in text
    assert f"| `a`, forward | {Verdict.ORACLE_ONLY} | 1 of 1 | the reason |" in text


def test_every_reason_says_something_and_is_given_once() -> None:
    known = reasons()
    assert all(len(one.text) > 20 and one.direction in ("forward", "backward") for one in known)
    assert len({one[:3] for one in known}) == len(known)


@pytest.mark.skipif(
    not all(importlib.util.find_spec(name) for name in ("numpy", "expecttest")),
    reason="torch's database of operations needs numpy and expecttest",
)
def test_the_recorder_sees_the_waits_of_the_guard() -> None:
    operations = recorded(UNDER_GUARD, "nonzero", "trace")["operations"]
    assert {one["forward"]["waits"] for one in operations["nonzero"]["samples"]} == {1}
    assert {(one["forward"]["waits"], one["backward"]["waits"]) for one in operations["trace"]["samples"]} == {(0, 1)}
