"""Every sample is linted as a project of its own: exactly the marked lines are reported, and nothing else.

`nosync_lint.testing` says what the markers mean.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from nosync_lint.registry import rules
from nosync_lint.testing import MalformedMarker, check_folder, markers

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"


def samples() -> list[Path]:
    """Sample files, and sample folders that are one program each."""
    return sorted(
        path
        for path in FIXTURES.glob("*/*")
        if path.name[0] not in "._" and ".fixed." not in path.name and path.parent.name != "__pycache__"
    )


def check(sample: Path, root: Path) -> list[str]:
    """Lint a copy of a sample under `root`, and complain."""
    if sample.is_dir():
        shutil.copytree(sample, root, ignore=shutil.ignore_patterns("__pycache__", ".nosync_lint_cache"))
    else:
        root.mkdir()
        shutil.copy(sample, root)
    return check_folder(root)


@pytest.mark.parametrize("sample", samples(), ids=lambda path: path.relative_to(FIXTURES).as_posix())
def test_exactly_the_marked_lines_are_reported(sample: Path, tmp_path: Path) -> None:
    assert check(sample, tmp_path / "sample") == []


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
        "main.py:3: dedup-on-device is reported 1 time and not marked so often",
    ),
    "a marker without a finding": (
        "    t.sort()  # error: [dedup-on-device]\n",
        "main.py:3: dedup-on-device is marked 1 time and not reported so often",
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
def test_a_wrong_marker_is_complained_about(line: str, complaint: str, tmp_path: Path) -> None:
    sample = tmp_path / "main.py"
    sample.write_text(f"import torch\ndef f(t: torch.Tensor):  # nosync-lint: hot\n{line}")
    assert check(sample, tmp_path / "sample") == [complaint]


@pytest.mark.parametrize("text", ["# error: [a] liekly", "# error:[a]", "# eroor: [a]", "# missed: [A b]"])
def test_a_malformed_marker_is_not_overlooked(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(text)
    with pytest.raises(MalformedMarker, match=r"a\.py:1: malformed marker"):
        list(markers(tmp_path))
