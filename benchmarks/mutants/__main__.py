"""Applies every mutant of the reference allocator, and writes who caught it to docs/mutants.md.

usage: python -m benchmarks.mutants [--jobs N] [ID ...]

With ids only those are tried, and nothing is written. Exits 1 if one survives a layer that must catch it, or is broken.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

from benchmarks.document import DOCS, circumstances, table, write_part
from benchmarks.mutants.mutant import STATIC, TESTED, Excused, Mutant, load
from benchmarks.mutants.runner import Verdict, Workspace

DOCUMENT = DOCS / "mutants.md"
MAYBE = {True: "yes", False: "**no**", None: ""}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("ids", nargs="*", metavar="ID", help="only these, by id or the start of it; nothing is written")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="processes (default: 2)")
    options = parser.parse_args()
    mutants, excused = load()
    chosen = [one for one in mutants if not options.ids or any(one.id.startswith(each) for each in options.ids)]
    start = time.monotonic()
    verdicts = []
    for verdict in tried(chosen, options.jobs):
        verdicts.append(verdict)
        print(line(verdict), flush=True)
    verdicts.sort(key=lambda one: one.mutant.id)
    minutes = (time.monotonic() - start) / 60
    print(f"{len(verdicts)} mutants in {minutes:.1f} minutes")
    if not options.ids:
        write_part(DOCUMENT, "totals", f"{circumstances()}\n\n{totals(verdicts, minutes)}")
        write_part(DOCUMENT, "mutants", rows(verdicts))
        write_part(DOCUMENT, "excused", reasons(excused))
    return 0 if all(verdict.killed for verdict in verdicts) else 1


_workspace: Workspace | None = None


def _open(folder: str) -> None:
    global _workspace  # one copy of the tree per process, for all the mutants that it tries
    _workspace = Workspace(Path(tempfile.mkdtemp(dir=folder)))


def _judge(mutant: Mutant) -> Verdict:
    assert _workspace is not None
    return _workspace.judge(mutant)


def _expect_sound(mutants: Sequence[Mutant]) -> None:
    assert _workspace is not None
    _workspace.expect_sound(mutants)


def tried(mutants: Sequence[Mutant], jobs: int) -> Iterator[Verdict]:
    """The verdicts as they come. Raises `MutantError` for a mutant that does not apply, and in the end for witnesses
    that fail without one.
    """
    with (
        tempfile.TemporaryDirectory(prefix="mutants-") as folder,
        ProcessPoolExecutor(jobs, initializer=_open, initargs=(folder,)) as pool,
    ):
        sound = pool.submit(_expect_sound, mutants)
        for future in as_completed([pool.submit(_judge, mutant) for mutant in mutants]):
            yield future.result()
        sound.result()


def line(verdict: Verdict) -> str:
    """A verdict on a terminal."""
    mutant = verdict.mutant
    state = "killed" if verdict.killed else "BROKEN" if verdict.broken else "SURVIVED"
    text = f"{mutant.id} {state}: {mutant.change}"
    text += f"\n    linter: {' '.join(verdict.codes) or 'silent'}"
    text += "".join(f"\n    {witness}: {said}" for witness, said in verdict.said.items())
    text += "".join(f"\n    {layer} SILENT: {', '.join(silent)}" for layer, silent in verdict.survived.items())
    return text + "".join(f"\n    BROKEN: {why}" for why in verdict.broken)


def caught(verdict: Verdict, layers: Sequence[str]) -> bool | None:
    """Whether these layers caught it; None where none of them must."""
    asked = [layer for layer in layers if layer in verdict.mutant.layers]
    if not asked:
        return None
    return not verdict.broken and not any(layer in verdict.survived for layer in asked)


def totals(verdicts: Sequence[Verdict], minutes: float) -> str:
    """How many are caught, of those that a layer must catch."""
    lines = [("all", len(verdicts), sum(verdict.killed for verdict in verdicts))]
    for layer in (STATIC, *TESTED):
        asked = [answer for verdict in verdicts if (answer := caught(verdict, [layer])) is not None]
        lines.append((layer, len(asked), sum(asked)))
    also = sum(bool(verdict.codes) and STATIC not in verdict.mutant.layers for verdict in verdicts)
    head = ["must be caught by", "mutants", "caught"]
    return (
        f"{table(head, lines)}\n\nThe linter also reports {also} that it need not. The run took {minutes:.0f} minutes."
    )


def rows(verdicts: Sequence[Verdict]) -> str:
    """Every mutant and who caught it."""
    head = ["id", "change", "must be caught by", "static?", "dispatch?", "tests?", "killed by"]
    others = [layer for layer in TESTED if layer != "dispatch"]
    return table(
        head,
        (
            (
                verdict.mutant.id,
                verdict.mutant.change,
                ", ".join(verdict.mutant.layers),
                MAYBE[caught(verdict, [STATIC])] or ("also" if verdict.codes else ""),
                MAYBE[caught(verdict, ["dispatch"])],
                MAYBE[caught(verdict, others)],
                killers(verdict),
            )
            for verdict in verdicts
        ),
    )


def killers(verdict: Verdict) -> str:
    """The rules and the tests that caught a mutant: the first test of each layer, by its name."""
    tests = [failed[0] for failed in verdict.failed.values() if failed]
    names = [test.partition("::")[2].partition("[")[0] for test in tests]
    return ", ".join([*verdict.codes, *dict.fromkeys(f"`{name}`" for name in names)])


def reasons(excused: Sequence[Excused]) -> str:
    """Changes that cannot be made, and why."""
    return table(["id", "change", "why not"], [(one.id, one.change, one.reason) for one in excused])


if __name__ == "__main__":
    sys.exit(main())
