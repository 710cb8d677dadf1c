"""Tests of rules: samples in which comments say what is reported.

    def test_a_print_of_a_tensor_is_reported() -> None:
        check_rule(HousePrint, flagged="print(t)  # error: [house-print]", clean="print(1)")

A marker is a comment on the line: `error: [slug]` for exactly one finding, optionally with its confidence or heat
behind it, `related: [slug]` for a place that a finding names, `missed: [slug]` for one that should be found and is not.
"""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import chdir
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from nosync_lint.config import load_config
from nosync_lint.finding import Confidence, Finding, Heat
from nosync_lint.pipeline import run
from nosync_lint.plural import counted
from nosync_lint.registry import fault, rules
from nosync_lint.rule import Rule

Sample = str | Mapping[str, str]
"""The text of one file, or of several by their names. A `nosync-lint.toml` among them is the configuration."""
CONFIG = "nosync-lint.toml"
MAIN = "main.py"
"""How the only file of a sample is called."""

_WORDS = "|".join([*Confidence, *Heat])
_MARKER = re.compile(
    rf"(?:#|//) (?P<form>error|related|missed): \[(?P<slug>[a-z0-9-]+)\](?P<words>(?: (?:{_WORDS}))*)"
    r"(?=\s*(?:$|#|//|\0|-\*-))"
)
_ANY_MARKER = re.compile(r"(?:#|//) ?\w+: ?\[")


class Marker(NamedTuple):
    """What a comment says of its line."""

    form: str
    filename: str
    row: int
    slug: str
    words: tuple[str, ...]


class MalformedMarker(ValueError):
    """A comment that looks like a marker and is none; the text names its file and row."""


def check_rule(rule: type[Rule], *, flagged: Sample, clean: Sample) -> None:
    """Assert that a rule reports exactly the marked lines of `flagged`, and nothing in `clean`.

    Each is linted as a project of its own, for every release of torch that is known and with every heat shown. The rule
    need not be installed. Findings of other rules play no part, except that a sample which cannot be read is a failure.
    """
    __tracebackhide__ = True  # a test that fails shows its own lines
    told = fault(rule)
    if told:
        raise AssertionError(f"{rule.__name__} {told}")
    slug, asked = rule.slug(), rule()
    if not any(marker.form == "error" and marker.slug == slug for marker in _markers_of(flagged)):
        raise AssertionError(f"the flagged sample has no `# error: [{slug}]` on the lines that the rule flags")
    marked = [f"{marker.filename}:{marker.row}" for marker in _markers_of(clean) if marker.form == "error"]
    if marked:
        raise AssertionError(f"the clean sample marks findings at {', '.join(marked)}: they belong in the flagged one")
    for kind, sample in (("flagged", flagged), ("clean", clean)):
        wrong = check_sample(sample, [asked])
        if wrong:
            raise AssertionError("\n  ".join([f"{slug} does not report the {kind} sample as it is marked:", *wrong]))


def check_sample(sample: Sample, selected: Sequence[Rule] | None = None) -> list[str]:
    """What is wrong with the markers of a sample, one sentence each. `selected` are asked, or every default rule."""
    with TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        for name, text in _files(sample).items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="")
        return check_folder(root, selected)


def check_folder(root: Path, selected: Sequence[Rule] | None = None) -> list[str]:
    """What is wrong with the markers of the files under a folder, which becomes a project of its own."""
    expected = list(markers(root))
    config = root / CONFIG
    config.touch()
    told = [] if selected is None else [one for one in rules() if "bad-file" in one.sites]
    settings = load_config(config)
    settings = replace(settings, heat="any", target_torch=settings.target_torch or ">=2.9")
    with chdir(root):  # findings are called by their paths from here
        report = run(["."], settings, jobs=1, cache=False, selected=None if selected is None else [*selected, *told])
    unread = [one for one in report.findings if one.code in {rule.code for rule in told}]
    if unread:  # a sample that cannot be read is clean to every other rule
        return [f"{one.filename}:{one.span.row}: {one.message}" for one in unread]
    return [*report.failures, *complaints(expected, report.findings)]


def markers(root: Path) -> Iterator[Marker]:
    """The markers of all files under a folder. Raises `MalformedMarker`."""
    for path in sorted(path for path in root.rglob("*") if path.is_file()):
        yield from _markers(path.relative_to(root).as_posix(), path.read_bytes().decode("latin-1"))


def _markers(name: str, text: str) -> Iterator[Marker]:
    for row, line in enumerate(text.split("\n"), 1):
        found = list(_MARKER.finditer(line.rstrip("\r")))
        if len(found) != len(_ANY_MARKER.findall(line)):
            raise MalformedMarker(f"{name}:{row}: malformed marker: {line.strip()}")
        for one in found:
            yield Marker(one["form"], name, row, one["slug"], tuple(one["words"].split()))


def complaints(expected: Sequence[Marker], findings: Sequence[Finding]) -> list[str]:
    """What is reported and not marked, marked and not reported, or not as it is marked."""
    wrong = []
    reported = Counter((f.filename, f.span.row, f.name) for f in findings)
    wanted = Counter((m.filename, m.row, m.slug) for m in expected if m.form == "error")
    missed = {(m.filename, m.row, m.slug) for m in expected if m.form == "missed"}
    for name, row, slug in sorted(reported - wanted):
        if (name, row, slug) in missed:
            wrong.append(f"{name}:{row}: {slug} is marked as missed and is found: mark it as an error")
        else:
            wrong.append(
                f"{name}:{row}: {slug} is reported {counted(reported[name, row, slug], 'time')} and not marked so often"
            )
    for name, row, slug in sorted(wanted - reported):
        wrong.append(
            f"{name}:{row}: {slug} is marked {counted(wanted[name, row, slug], 'time')} and not reported so often"
        )
    for marker in expected:
        here = [f for f in findings if (f.filename, f.span.row, f.name) == (marker.filename, marker.row, marker.slug)]
        for word in marker.words if marker.form == "error" else ():
            if any(word not in (f.confidence, f.heat) for f in here):
                told = ", ".join(f"{f.confidence} {f.heat}" for f in here)
                wrong.append(f"{marker.filename}:{marker.row}: {marker.slug} is marked {word} and reported as {told}")
    named = {(hop.filename, hop.row, f.name) for f in findings for hop in (*f.flow, *f.evidence, *f.related)}
    for marker in expected:
        if marker.form == "related" and (marker.filename, marker.row, marker.slug) not in named:
            wrong.append(f"{marker.filename}:{marker.row}: no finding of {marker.slug} names this line")
    return wrong


def _files(sample: Sample) -> dict[str, str]:
    files = {MAIN: sample} if isinstance(sample, str) else sample
    return {name: textwrap.dedent(text) for name, text in files.items()}


def _markers_of(sample: Sample) -> list[Marker]:
    return [marker for name, text in _files(sample).items() for marker in _markers(name, text)]
