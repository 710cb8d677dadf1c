"""Runs the samples of families 1 to 3 on torch itself and compares with the linter; writes docs/oracle.md.

usage: python -m benchmarks.oracle --python PATH [--python PATH ...] [--only SLUG ...]

PATH is an interpreter with a CUDA build of torch and numpy; no GPU is needed, as torch runs against the stub CUDA
runtime (docs/stub_runtime.md). The linter judges for the release of each. With --only, only the samples of those rules
are run, and what comes out is only printed.
"""

from __future__ import annotations

import argparse
import datetime
import platform
import shutil
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from benchmarks.document import DOCS, table, write_part
from benchmarks.oracle.judging import JUDGED, Outcome, Verdict, judge
from benchmarks.recorded import on_stubs, recorded
from nosync_lint import __version__
from nosync_lint.registry import rules

ROOT = DOCS.parent
FIXTURES = ROOT / "fixtures"
HEAD = ("rule", "reported", "waits", "silent", "does not wait", "disagree", "known missed", "not run", "not judged")


def samples(fixtures: Path, only: Sequence[str]) -> list[tuple[str, Path]]:
    """Sample files and folders of each rule, with its slug."""
    slugs = [rule.slug() for rule in rules() if rule.code.startswith(JUDGED) and (not only or rule.slug() in only)]
    return [
        (slug, path)
        for slug in slugs
        for path in sorted((fixtures / slug).glob("*"))
        if path.name[0] not in "._" and ".fixed." not in path.name and (path.is_dir() or path.suffix == ".py")
    ]


def compared(command: Sequence[str], wanted: Sequence[tuple[str, Path]]) -> tuple[str, list[Outcome]]:
    """The version of torch that a command records with, and what comes out there."""
    told = recorded(command, *(str(path) for _, path in wanted))
    version = str(told["torch"]).partition("+")[0]
    release = ".".join(version.split(".")[:2])
    return version, [
        outcome for slug, path in wanted for outcome in judge(path, slug, told["samples"][str(path)], release)
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--python", type=Path, action="append", required=True, metavar="PATH")
    parser.add_argument("--only", action="append", default=[], metavar="SLUG")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        fixtures = Path(shutil.copytree(FIXTURES, Path(folder).resolve() / "fixtures"))  # what is run is what is judged
        wanted = samples(fixtures, options.only)
        if not wanted:
            parser.error("no samples there")
        commands = [on_stubs(python, "benchmarks.oracle.recorder") for python in options.python]
        outcomes = dict(compared(command, wanted) for command in commands)
    text = told(outcomes)
    if options.only:
        print(text)
    else:
        write_part(DOCS / "oracle.md", "oracle", text)
        for version, found in outcomes.items():
            counts = Counter(one.verdict for one in found)
            print(f"torch {version}: " + ", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict))
    return 1 if any(one.verdict is Verdict.DISAGREE for found in outcomes.values() for one in found) else 0


def told(outcomes: dict[str, list[Outcome]]) -> str:
    """A table per release, and what disagrees or could not be judged."""
    parts = [
        f"nosync-lint {__version__}, torch {', '.join(outcomes)}, Python {platform.python_version()}, "
        f"{datetime.date.today():%-d %B %Y}."
    ]
    for version, found in outcomes.items():
        parts += [f"### torch {version}", table(HEAD, _counted(found))]
    parts += ["### Disagreements", _listed(outcomes, Verdict.DISAGREE)]
    parts += ["### Not run", _listed(outcomes, Verdict.NOT_RUN)]
    return "\n\n".join(parts)


def _counted(outcomes: Iterable[Outcome]) -> Iterable[tuple[object, ...]]:
    by_rule: dict[str, list[Outcome]] = defaultdict(list)
    for one in outcomes:
        by_rule[one.slug].append(one)
    codes = {rule.slug(): rule.code for rule in rules()}
    named = [(f"{codes[slug]} {slug}", by_rule[slug]) for slug in sorted(by_rule, key=lambda slug: codes[slug])]
    for name, found in [*named, ("all", [one for _, group in named for one in group])]:
        sides = Counter((one.reported, one.verdict) for one in found)
        counts = Counter(one.verdict for one in found)
        row: list[object] = [name]
        for reported in (True, False):
            agree = sides[reported, Verdict.AGREE]
            row += [agree + sides[reported, Verdict.DISAGREE], agree]
        kinds = (Verdict.DISAGREE, Verdict.KNOWN, Verdict.NOT_RUN, Verdict.NOT_JUDGED)
        yield (*row, *(counts[verdict] for verdict in kinds))


def _listed(outcomes: dict[str, list[Outcome]], verdict: Verdict) -> str:
    """The places with a verdict, by what is to be said of them."""
    versions: dict[tuple[str, str, int], set[str]] = defaultdict(set)
    for version, found in outcomes.items():
        for one in found:
            if one.verdict is verdict:
                versions[one.note, one.filename, one.row].add(version)
    lines: dict[str, list[str]] = defaultdict(list)
    for (note, filename, row), where in sorted(versions.items()):
        only = "" if len(where) == len(outcomes) else f" (torch {', '.join(sorted(where))})"
        lines[note].append(f"{filename}:{row}{only}")
    return "\n".join(f"- {note}: {', '.join(places)}" for note, places in lines.items()) or "None."


if __name__ == "__main__":
    raise SystemExit(main())
