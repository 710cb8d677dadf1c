"""Whether two records of the same operations say the same: does the host wait, sample by sample, there and back."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

DIRECTIONS = ("forward", "backward")


class Verdict(StrEnum):
    AGREE = "agree"
    GUARD_ONLY = "only the guard says that the host waits"
    ORACLE_ONLY = "only the recording runtime says that the host waits"
    NOT_COMPARABLE = "not comparable"


DISAGREE = (Verdict.GUARD_ONLY, Verdict.ORACLE_ONLY)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came out for one sample of an operation.

    `waits`: the host does; where the sides disagree, one of them says so. `note` says why a sample cannot be compared,
    and what its operands are where the two sides disagree.
    """

    operation: str
    direction: str
    verdict: Verdict
    waits: bool = False
    note: str = ""


@dataclass(frozen=True, slots=True)
class Sum:
    """One direction of one operation: the worst of its samples, of those that can be compared."""

    operation: str
    direction: str
    verdict: Verdict
    waits: bool
    outcomes: tuple[Outcome, ...]

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(one.note for one in self.outcomes if one.verdict is self.verdict))


def compare(guard: dict[str, Any], oracle: dict[str, Any]) -> Iterator[Outcome]:
    """The records of two runs of `recorder`, of the same release. Raises `ValueError` if they are not."""
    if _release(guard) != _release(oracle):
        raise ValueError(f"the guard ran on torch {guard['torch']}, the recording runtime on {oracle['torch']}")
    for name in sorted(guard["operations"].keys() | oracle["operations"].keys()):
        sides = [side["operations"].get(name, {"samples": [], "died": "not there"}) for side in (guard, oracle)]
        for label, side in zip(("under the guard", "on the recording runtime"), sides, strict=True):
            if "died" in side:
                yield Outcome(name, "forward", Verdict.NOT_COMPARABLE, note=f"{label}: {side['died']}")
                break
        else:
            yield from _of_operation(name, *(side["samples"] for side in sides))


def _release(record: dict[str, Any]) -> str:
    return str(record["torch"]).partition("+")[0]


def _of_operation(name: str, guard: list[dict[str, Any]], oracle: list[dict[str, Any]]) -> Iterator[Outcome]:
    for mine, other in zip(guard, oracle, strict=True):
        if mine["outline"] != other["outline"]:
            raise ValueError(f"{name}: other samples, {mine['outline']} and {other['outline']}")
        for direction in DIRECTIONS:
            passes = mine.get(direction), other.get(direction)
            if passes != (None, None):
                yield _judged(name, direction, *passes, mine["outline"])


def _judged(
    name: str, direction: str, guard: dict[str, Any] | None, oracle: dict[str, Any] | None, outline: str
) -> Outcome:
    if guard is None or oracle is None:
        where = "under the guard" if guard is None else "on the recording runtime"
        return Outcome(name, direction, Verdict.NOT_COMPARABLE, note=f"no backward {where}")
    mine, other = _waits(guard), _waits(oracle)
    if mine is None or other is None:
        where = "on both sides" if mine is other else "under the guard" if mine is None else "on the recording runtime"
        note = f"raises {where}: {_message(oracle if other is None else guard)}"
        return Outcome(name, direction, Verdict.NOT_COMPARABLE, note=note)
    if mine == other:
        return Outcome(name, direction, Verdict.AGREE, mine)
    return Outcome(name, direction, Verdict.GUARD_ONLY if mine else Verdict.ORACLE_ONLY, True, outline)


def _waits(passed: dict[str, Any]) -> bool | None:
    """Whether the host waits on a way; None of one that raised before it did."""
    return True if passed["waits"] else None if passed["error"] else False


def _message(passed: dict[str, Any]) -> str:
    """What was raised, without what differs between two samples of a kind."""
    return re.sub(r"\d+", "N", passed["error"])


def summed(outcomes: Iterable[Outcome]) -> list[Sum]:
    """By operation and direction, in order."""
    groups: dict[tuple[str, str], list[Outcome]] = defaultdict(list)
    for one in outcomes:
        groups[one.operation, one.direction].append(one)
    return [Sum(*key, _worst(group), any(one.waits for one in group), tuple(group)) for key, group in groups.items()]


def _worst(outcomes: list[Outcome]) -> Verdict:
    seen = {one.verdict for one in outcomes}
    order = (Verdict.GUARD_ONLY, Verdict.ORACLE_ONLY, Verdict.AGREE)
    return next((one for one in order if one in seen), Verdict.NOT_COMPARABLE)
