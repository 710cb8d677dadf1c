"""Runs packages under the guard and lints them, and compares statement by statement; writes docs/library_use.md.

usage: python -m benchmarks.library_use FOLDER [PACKAGE ...]

Needs what benchmarks/library_use/requirements.txt names. `programs/` use the packages on `device="cuda"`; what was seen
is kept in FOLDER, and a package whose record is there is not run again. With packages, what comes out is only printed.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.document import DOCS, circumstances, table, write_part
from benchmarks.library_use.comparison import Compared, Place, compare
from benchmarks.library_use.linted import Line, Linted, lint
from benchmarks.library_use.reasons import Reasons
from nosync_lint.finding import Heat

PROGRAMS = Path(__file__).resolve().parent / "programs"
PACKAGES = ("kornia", "torch_geometric", "transformers")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("packages", nargs="*", choices=[[], *PACKAGES], metavar="PACKAGE")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    parts = [told(name, options.folder.resolve()) for name in options.packages or PACKAGES]
    text = "\n\n".join([f"nosync-lint {version('nosync-lint')}, {circumstances()}", *parts])
    if options.packages:
        print(text)
    else:
        write_part(DOCS / "library_use.md", "library_use", text)
    return 0


def told(package: str, folder: Path) -> str:
    """What came of one package, as Markdown."""
    spec = importlib.util.find_spec(package)
    assert spec is not None, f"{package} is not installed"
    assert spec.origin is not None
    home = Path(spec.origin).parent
    record, passed = guarded(package, home, folder)
    linted = lint(home, version("torch").partition("+")[0].rpartition(".")[0])
    events = [{**event, "filename": _relative(event["filename"], home)} for event in record["findings"]]
    rows = json.loads((folder / f"{package}-rows.json").read_text(encoding="utf-8"))
    compared = compare(home, rows, events, linted.findings)
    return "\n\n".join(_sections(package, passed, compared, linted))


def guarded(package: str, home: Path, folder: Path) -> tuple[dict[str, Any], str]:
    """What the guard saw while the programs of a package ran, and how many of them ran to their end."""
    seen, rows, output = (folder / f"{package}-{kind}" for kind in ("guard.json", "rows.json", "output.txt"))
    if not seen.exists():
        command: list[str | Path] = [
            sys.executable, "-m", "pytest", "-q", "--tb=short", "-c", PROGRAMS / "pytest.ini",
            "-p", "benchmarks.library_use.executed", f"--executed-in={home}", f"--executed-json={rows}",
            "--nosync-all", f"--nosync-json={seen}", PROGRAMS / f"test_{package}.py",
        ]  # fmt: skip
        root = PROGRAMS.parent.parent.parent
        with output.open("w", encoding="utf-8") as stream:
            subprocess.run(command, stdout=stream, check=False, env={**os.environ, "PYTHONPATH": str(root)}, cwd=root)
    passed = re.findall(r"^.*(?:passed|failed).* in [\d.]+s.*$", output.read_text(encoding="utf-8"), re.MULTILINE)
    return json.loads(seen.read_text(encoding="utf-8")), passed[-1].rpartition(" in ")[0]


def _relative(filename: str, home: Path) -> str:
    path = Path(filename)
    return path.relative_to(home.parent).as_posix() if path.is_relative_to(home) else filename


def _sections(package: str, passed: str, compared: Compared, linted: Linted) -> Iterator[str]:
    reasons = Reasons.of(package)
    yield f"### {package} {version(package)}"
    yield (
        f"Programs: {passed}. {compared.ran} statements of functions of the package ran that could wait; "
        f"{compared.elsewhere} waits were in the programs or in other packages."
    )
    lines = linted.lines(one.key for one in compared.guard_only)
    yield _counts(compared, lines)
    yield _by_rule(compared)
    yield _judged(compared, reasons)
    yield "Waits that the linter does not report:"
    yield _unreported(compared.guard_only, lines, reasons)
    yield "Reports of statements that ran and did not wait:"
    yield _unseen(compared.linter_only, reasons)


def _counts(compared: Compared, lines: dict[tuple[str, int], Line]) -> str:
    both = compared.both
    waited = [*both, *compared.guard_only]
    hot_reported = [one for one in both if one.is_hot]
    hot = [*hot_reported, *(one for one in compared.guard_only if lines[one.key].heat == Heat.HOT)]
    shown = [one for one in both if one.by_default]
    idle = compared.linter_only
    rows: list[Sequence[object]] = [
        ("waited under the guard", len(waited), ""),
        ("of these reported, at any heat and confidence", *_share(both, waited)),
        ("of these reported by the same rule", *_share([one for one in both if one.same_rule], waited)),
        ("of these reported without options (hot, likely)", *_share(shown, waited)),
        ("waited in code that the linter calls hot", len(hot), ""),
        ("of these reported, at any confidence", *_share(hot_reported, hot)),
        ("of these reported without options (hot, likely)", *_share(shown, hot)),
        ("reported, and did not wait", len(idle), ""),
        ("of these reported without options (hot, likely)", *_share([one for one in idle if one.by_default], idle)),
    ]
    return table(("statements that ran", "count", "share"), rows)


def _share(some: Sequence[Place], of: Sequence[Place]) -> tuple[int, str]:
    return len(some), f"{100 * len(some) / len(of):.0f} %" if of else ""


def _by_rule(compared: Compared) -> str:
    waited = Counter(code for one in (*compared.both, *compared.guard_only) for code in one.waited)
    missed = Counter(code for one in compared.guard_only for code in one.waited)
    idle = Counter(code for one in compared.linter_only for code in {finding.code for finding in one.reported})
    codes = sorted(waited.keys() | idle.keys())
    rows = [(code, waited[code], waited[code] - missed[code], missed[code], idle[code]) for code in codes]
    return table(("rule", "waited", "of these reported", "not reported", "reported, did not wait"), rows)


def _judged(compared: Compared, reasons: Reasons) -> str:
    """How many disagreements there are by who is right."""
    unreported, idle = (
        Counter(reasons.why(one)[0] for one in some) for some in (compared.guard_only, compared.linter_only)
    )
    rows = [(who, unreported[who], idle[who]) for who in sorted(unreported.keys() | idle.keys())]
    return table(("who is right", "waited, not reported", "reported, did not wait"), rows)


def _unreported(places: Sequence[Place], lines: dict[tuple[str, int], Line], reasons: Reasons) -> str:
    rows = [
        (
            f"{one.filename}:{one.row}",
            ", ".join(sorted(one.waited)),
            lines[one.key].heat,
            *reasons.why(one),
        )
        for one in places
    ]
    return table(("place", "waited", "heat", "who is right", "why"), rows)


def _unseen(places: Sequence[Place], reasons: Reasons) -> str:
    rows = []
    for one in places:
        best = one.best
        assert best is not None
        rows.append((f"{one.filename}:{one.row}", best.code, best.heat, best.confidence, *reasons.why(one)))
    return table(("place", "reported", "heat", "confidence", "who is right", "why"), rows)


if __name__ == "__main__":
    raise SystemExit(main())
