"""Runs torch's database of operations under the guard and on a recording CUDA runtime, and compares where the host
waits; writes docs/guard_sweep.md.

usage: python -m benchmarks.guard_sweep --python PATH [--only NAME ...]

PATH is an interpreter as for `python -m benchmarks.oracle`, with the CUDA build of the torch that is installed here.
Both sides need what torch's database imports: `numpy`, `expecttest`, and `scipy` for sparse operations. Every
disagreement must have its reason in `explained.toml`. With --only, only those operations run, and what comes out is
only printed.
"""

from __future__ import annotations

import argparse
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.document import DOCS, circumstances, table, write_part
from benchmarks.guard_sweep.agreement import DIRECTIONS, DISAGREE, Outcome, Sum, Verdict, compare, summed
from benchmarks.recorded import on_stubs, recorded

UNDER_GUARD = [sys.executable, "-m", "benchmarks.guard_sweep.under_guard"]
EXPLAINED = Path(__file__).with_name("explained.toml")
HEAD = ("", "compared", "agree", "both wait", "none waits", "guard only", "runtime only", "agreement", "not compared")


class Reason(NamedTuple):
    """Why the two sides disagree about an operation in one direction."""

    operation: str
    direction: str
    verdict: Verdict
    text: str


def reasons() -> list[Reason]:
    return [
        Reason(name, entry["direction"], Verdict[entry["verdict"]], entry["reason"])
        for entry in tomllib.loads(EXPLAINED.read_text(encoding="utf-8"))["disagreement"]
        for name in entry["operations"]
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=" ".join((__doc__ or "").split("\n\n")[0].split()))
    parser.add_argument("--python", type=Path, required=True, metavar="PATH")
    parser.add_argument("--only", action="append", default=[], metavar="NAME")
    options = parser.parse_args()
    guard = recorded(UNDER_GUARD, *options.only)
    oracle = recorded(on_stubs(options.python, "benchmarks.guard_sweep.recorder"), *options.only)
    outcomes = list(compare(guard, oracle))
    sums, known = summed(outcomes), reasons()
    text = told(outcomes, sums, known)
    if options.only:
        print(text)
        return 0
    write_part(DOCS / "guard_sweep.md", "verdicts", text)
    counts = Counter(one.verdict for one in sums)
    print(", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict))
    wrong = unexplained(sums, known)
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


def unexplained(sums: Iterable[Sum], known: Iterable[Reason]) -> list[str]:
    """Disagreements that have no reason, and reasons that speak of none."""
    found = {(one.operation, one.direction, one.verdict) for one in sums if one.verdict in DISAGREE}
    given = {(one.operation, one.direction, one.verdict) for one in known}
    return [f"without a reason: {', '.join(one)}" for one in sorted(found - given)] + [
        f"no longer so: {', '.join(one)}" for one in sorted(given - found)
    ]


def told(outcomes: Sequence[Outcome], sums: Sequence[Sum], known: Iterable[Reason]) -> str:
    """A table of operations and of their samples, what disagrees and why, and what could not be compared."""
    rows: list[Sequence[object]] = []
    for what, listed in (("operations", sums), ("samples", outcomes)):
        for direction in (*DIRECTIONS, "both"):
            chosen = [one for one in listed if direction in (one.direction, "both")]
            rows.append((f"{what}, {direction}", *_counted(chosen)))
    return "\n\n".join(
        [
            circumstances(),
            table(HEAD, rows),
            "### Disagreements",
            _disagreements(sums, known),
            "### Not compared",
            _not_compared(outcomes),
        ]
    )


def _counted(listed: Iterable[Sum | Outcome]) -> tuple[object, ...]:
    counts = Counter((one.verdict, one.waits) for one in listed)
    agree = [counts[Verdict.AGREE, waits] for waits in (True, False)]
    wrong = [counts[verdict, True] for verdict in DISAGREE]
    compared = sum(agree) + sum(wrong)
    share = f"{sum(agree) / compared:.2%}" if compared else ""
    return (compared, sum(agree), *agree, *wrong, share, counts[Verdict.NOT_COMPARABLE, False])


def _disagreements(sums: Iterable[Sum], known: Iterable[Reason]) -> str:
    because = {(one.operation, one.direction, one.verdict): one.text for one in known}
    rows = [
        (
            f"`{one.operation}`, {one.direction}",
            one.verdict,
            f"{sum(sample.verdict in DISAGREE for sample in one.outcomes)} of {len(one.outcomes)}",
            because.get((one.operation, one.direction, one.verdict), "**unexplained**"),
        )
        for one in sums
        if one.verdict in DISAGREE
    ]
    return table(("operation", "verdict", "samples", "reason"), rows) if rows else "None."


def _not_compared(outcomes: Iterable[Outcome]) -> str:
    """Samples that could not be compared, by the reason."""
    groups: dict[str, Counter[tuple[str, str]]] = defaultdict(Counter)
    for one in outcomes:
        if one.verdict is Verdict.NOT_COMPARABLE:
            groups[one.note][one.operation, one.direction] += 1
    lines = [
        f"- {note}: " + "; ".join(f"`{name}`, {direction} ({count})" for (name, direction), count in where.items())
        for note, where in sorted(groups.items())
    ]
    return "\n".join(lines) or "None."


if __name__ == "__main__":
    raise SystemExit(main())
