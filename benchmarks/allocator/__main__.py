"""Measures the reference allocator and writes the tables of docs/allocator.md.

usage: python -m benchmarks.allocator [--python PATH ...]

Without --python the parts about a CPU are written anew and the one about the CUDA build stays, as does the one about
tvm-ffi without the extra. PATH is an interpreter with a CUDA build of torch, as for `benchmarks.oracle`. Exits 1 if a
number misses its target.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.allocator import bindings, churn, conv, frees, lint, packs
from benchmarks.allocator.calls import WAITS
from benchmarks.document import DOCS, circumstances, table, write_part
from benchmarks.recorded import on_stubs, recorded

DOCUMENT = DOCS / "allocator.md"
MOST_DISPATCHES, FUSED_DISPATCHES, NAIVE_DISPATCHES, NAIVE_SYNCS, FASTER, STEADY = 6, 1, 9, 3, 5, 3
SLOWER = 1.1
FASTER_AT = (256, 8192)
Target = tuple[str, str, bool]
"""What is aimed at, what was measured, and whether it is met."""


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--python", type=Path, action="append", default=[], metavar="PATH")
    options = parser.parse_args()
    rounds = frees.measure()
    records = [recorded(on_stubs(python, "benchmarks.allocator.on_cuda")) for python in options.python]
    churned = churn.measure()
    packed, convolved, linted = packs.measure(), conv.measure(), lint.measure()
    told = {
        "frees": frees.told(rounds),
        "packs": packs.told(packed),
        "conv": conv.told(convolved),
        "churn": churn.told(churned),
        "lint": lint.told(linted),
    }
    if bindings.available():
        told["bindings"] = f"tvm-ffi {bindings.version()}.\n\n{bindings.told(bindings.measure())}"
    for part, text in told.items():
        write_part(DOCUMENT, part, f"{circumstances()}\n\n{text}")
    targets = [*_of_frees(rounds), _of_packs(packed), _of_conv(convolved), *_of_churn(churned)]
    write_part(DOCUMENT, "targets", _said(targets))
    if records:
        on_cuda = [target for one in records for target in _of_cuda(one)]
        write_part(
            DOCUMENT,
            "cuda",
            "\n\n".join([circumstances(*map(_version, records)), _said(on_cuda), *map(_recorded, records)]),
        )
        targets += on_cuda
    print(_said(targets))
    return 0 if all(met for _, _, met in targets) else 1


def _of_frees(rounds: Sequence[frees.Round]) -> Iterator[Target]:
    freed = [one for measured in rounds for one in (*measured.frees, *measured.same_pages)]
    most = max(one.ours.dispatches for one in freed)
    yield f"at most {MOST_DISPATCHES} dispatches per free by position", str(most), most <= MOST_DISPATCHES
    launched = {one.fused.dispatches for one in freed}
    yield "one launch per fused free", ", ".join(map(str, sorted(launched))), launched == {FUSED_DISPATCHES}
    syncs = max(max(one.ours.syncs, one.fused.syncs) for one in freed)
    yield "no sync in a free by position", str(syncs), syncs == 0
    naive = {(one.naive.dispatches, one.naive.syncs) for one in freed}
    measured = ", ".join(f"{dispatches} with {syncs}" for dispatches, syncs in sorted(naive))
    yield (
        f"{NAIVE_DISPATCHES} dispatches with {NAIVE_SYNCS} syncs per naive free",
        measured,
        naive == {(NAIVE_DISPATCHES, NAIVE_SYNCS)},
    )
    page_size, tokens = FASTER_AT
    there = [one for measured in rounds for one in measured.frees if (one.page_size, one.tokens) == FASTER_AT]
    for kind, steady, faster in (
        ("free", [one.steady for one in rounds], [one.faster for one in there]),
        ("fused free", [one.fused_steady for one in rounds], [one.fused_faster for one in there]),
    ):
        said = f"a {kind} of {frees.PAGES} pages at most {STEADY} times dearer with large pages than with small"
        yield said, frees.span(steady, 1), max(steady) <= STEADY
        enough = sum(times >= FASTER for times in faster)
        said = (
            f"a {kind} of {tokens:,} tokens in pages of {page_size} at least {FASTER} times faster than the naive one"
        )
        yield said, f"{frees.span(faster, 1)}; in {enough} of {len(faster)} processes", enough == len(faster)


def _of_packs(packed: Sequence[packs.Pack]) -> Target:
    syncs = [{way.syncs for way in ways} for ways in zip(*((one.naive, one.ours) for one in packed), strict=True)]
    said = f"{NAIVE_SYNCS} syncs in a compaction planned on the host, none in one planned on the device"
    return said, " and ".join(frees.span(each) for each in syncs), syncs == [{NAIVE_SYNCS}, {0}]


def _of_conv(rows: Sequence[conv.Row]) -> Target:
    ratios = [row.ratio for row in rows]
    said = f"no kernel more than {SLOWER} times slower on the view of a state pool than on a contiguous state"
    return said, frees.span(ratios, 2), max(ratios) <= SLOWER


def _of_churn(rows: Sequence[churn.Row]) -> Iterator[Target]:
    calls = sum(row.calls for row in rows)
    broken, waits = sum(row.broken for row in rows), sum(row.waits for row in rows)
    yield f"no broken invariant in {calls:,} random calls", str(broken), broken == 0
    yield f"no sync in {calls:,} random calls", str(waits), waits == 0


def _of_cuda(told: dict[str, Any]) -> Iterator[Target]:
    sides = [row[checks] for row in told["rows"] for checks in ("plain", "checked")]
    waits = sum(side[kind] for side in sides for kind in WAITS)
    said = f"torch {_version(told)}: no wait and no blocking copy in {len(told['rows'])} calls, twice each"
    yield said, str(waits), waits == 0
    calls, waits = (sum(case[kind] for case in told["churn"]) for kind in ("calls", "waits"))
    said = f"torch {_version(told)}: none in {calls:,} random calls, in {len(told['churn'])} cases"
    yield said, str(waits), waits == 0


def _said(targets: Sequence[Target]) -> str:
    head = ("target", "measured", "met")
    return table(head, [(aim, measured, "yes" if met else "**no**") for aim, measured, met in targets])


def _version(told: dict[str, Any]) -> str:
    return str(told["torch"]).partition("+")[0]


def _recorded(told: dict[str, Any]) -> str:
    """A table of what was recorded, without checks and with them, and the bad example below."""
    kinds = (*WAITS, "kernels", "moved")
    rows = [
        (f"`{row['call']}`", row["heat"], *(_both(row["plain"][kind], row["checked"][kind]) for kind in kinds))
        for row in told["rows"]
    ]
    naive = told["naive"]
    rows.append((f"`{naive['call']}`", "bad example", *(str(naive["plain"][kind]) for kind in kinds)))
    head = ("call", "heat", *(f"{kind} syncs" for kind in WAITS[:3]), "blocking copies", "kernels", "device copies")
    return f"### torch {_version(told)}\n\n{table(head, rows)}"


def _both(plain: int, checked: int) -> str:
    return f"{plain} / {checked}"


if __name__ == "__main__":
    raise SystemExit(main())
