"""Every sample is linted as a project of its own: exactly the marked lines are reported, and nothing else.

A marker is a comment on the line: `error: [slug]` for exactly one finding, optionally with its confidence or heat
behind it, `related: [slug]` for a place that a finding names, `missed: [slug]` for one that should be found and is not.
"""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from nosync_lint.config import Settings, load_config
from nosync_lint.finding import Confidence, Finding, Heat
from nosync_lint.pipeline import run
from nosync_lint.registry import rules

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"
CONFIG = "nosync-lint.toml"
_WORDS = "|".join([*Confidence, *Heat])
_MARKER = re.compile(
    rf"(?:#|//) (?P<form>error|related|missed): \[(?P<slug>[a-z-]+)\](?P<words>(?: (?:{_WORDS}))*)"
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


def samples() -> list[Path]:
    """Sample files, and sample folders that are one program each."""
    return sorted(
        path
        for path in FIXTURES.glob("*/*")
        if path.name[0] not in "._" and ".fixed." not in path.name and path.parent.name != "__pycache__"
    )


def markers(root: Path) -> Iterator[Marker]:
    """The markers of all files under a folder."""
    for path in sorted(path for path in root.rglob("*") if path.is_file()):
        lines = path.read_bytes().decode("latin-1").split("\n")
        for row, line in enumerate(lines, 1):
            found = list(_MARKER.finditer(line.rstrip("\r")))
            name = path.relative_to(root).as_posix()
            assert len(found) == len(_ANY_MARKER.findall(line)), f"{name}:{row}: malformed marker: {line.strip()}"
            for one in found:
                yield Marker(one["form"], name, row, one["slug"], tuple(one["words"].split()))


def complaints(expected: list[Marker], findings: tuple[Finding, ...]) -> list[str]:
    """What is reported and not marked, marked and not reported, or not as it is marked."""
    wrong = []
    reported = Counter((f.filename, f.span.row, f.name) for f in findings)
    wanted = Counter((m.filename, m.row, m.slug) for m in expected if m.form == "error")
    missed = {(m.filename, m.row, m.slug) for m in expected if m.form == "missed"}
    for name, row, slug in sorted(reported - wanted):
        if (name, row, slug) in missed:
            wrong.append(f"{name}:{row}: {slug} is marked as missed and is found: mark it as an error")
        else:
            wrong.append(f"{name}:{row}: {slug} is reported {reported[name, row, slug]} times and not marked so often")
    for name, row, slug in sorted(wanted - reported):
        wrong.append(f"{name}:{row}: {slug} is marked {wanted[name, row, slug]} times and not reported so often")
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


def check(sample: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Lint a copy of a sample under `root`, and complain."""
    if sample.is_dir():
        shutil.copytree(sample, root, ignore=shutil.ignore_patterns("__pycache__", ".nosync_lint_cache"))
    else:
        root.mkdir()
        shutil.copy(sample, root)
    expected = list(markers(root))
    config = root / CONFIG
    settings = load_config(config) if config.exists() else Settings()
    config.touch()  # a project of its own, wherever it lies
    monkeypatch.chdir(root)
    report = run(
        ["."], replace(settings, heat="any", target_torch=settings.target_torch or ">=2.9"), jobs=1, cache=False
    )
    assert report.failures == ()
    return complaints(expected, report.findings)


@pytest.mark.parametrize("sample", samples(), ids=lambda path: path.relative_to(FIXTURES).as_posix())
def test_exactly_the_marked_lines_are_reported(sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert check(sample, tmp_path / "sample", monkeypatch) == []


def test_no_marker_names_an_unknown_rule() -> None:
    known = {rule.slug() for rule in rules()}
    unknown = {
        f"{marker.filename}:{marker.row}: {marker.slug}" for marker in markers(FIXTURES) if marker.slug not in known
    }
    assert unknown == set()


def test_flagged_samples_flag_their_own_rule_and_clean_ones_do_not() -> None:
    for sample in samples():
        slug, kind = sample.parent.name, sample.name.partition(".")[0]
        if kind not in ("flagged", "clean", "across_modules"):
            continue
        lines = [sample] if sample.is_file() else [path for path in sample.rglob("*") if path.is_file()]
        own = sum(f"error: [{slug}]".encode() in path.read_bytes() for path in lines)
        assert bool(own) == (kind != "clean"), sample
        assert kind != "across_modules" or len(lines) > 1, sample


WRONG = {
    "a finding without a marker": (
        "    t.unique()\n",
        "main.py:3: dedup-on-device is reported 1 times and not marked so often",
    ),
    "a marker without a finding": (
        "    t.sort()  # error: [dedup-on-device]\n",
        "main.py:3: dedup-on-device is marked 1 times and not reported so often",
    ),
    "two markers and one finding": (
        "    t.unique()  # error: [dedup-on-device]  # error: [dedup-on-device]\n",
        "main.py:3: dedup-on-device is marked 2 times and not reported so often",
    ),
    "another confidence": (
        "    t.unique()  # error: [dedup-on-device] certain\n",
        "main.py:3: dedup-on-device is marked certain and reported as likely hot",
    ),
    "another heat": (
        "    t.unique()  # error: [dedup-on-device] cold\n",
        "main.py:3: dedup-on-device is marked cold and reported as likely hot",
    ),
    "a miss that is found": (
        "    t.unique()  # missed: [dedup-on-device]\n",
        "main.py:3: dedup-on-device is marked as missed and is found: mark it as an error",
    ),
    "a place that no finding names": (
        "    t.sort()  # related: [dedup-on-device]\n",
        "main.py:3: no finding of dedup-on-device names this line",
    ),
}


@pytest.mark.parametrize(("line", "complaint"), WRONG.values(), ids=WRONG.keys())
def test_a_wrong_marker_is_complained_about(
    line: str, complaint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sample = tmp_path / "main.py"
    sample.write_text(f"import torch\ndef f(t: torch.Tensor):  # nosync-lint: hot\n{line}")
    assert check(sample, tmp_path / "sample", monkeypatch) == [complaint]


@pytest.mark.parametrize("text", ["# error: [a] liekly", "# error:[a]", "# eroor: [a]", "# missed: [A b]"])
def test_a_malformed_marker_is_not_overlooked(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(text)
    with pytest.raises(AssertionError, match=r"a\.py:1: malformed marker"):
        list(markers(tmp_path))
