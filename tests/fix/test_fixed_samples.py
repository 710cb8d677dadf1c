"""Samples that can be fixed stand beside what all their fixes make of them: `flagged.py` beside `flagged.fixed.py`.

    python -m tests.fix.test_fixed_samples

writes those files anew.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import tokenize
from itertools import pairwise
from pathlib import Path

import pytest

from nosync_lint.config import Settings
from nosync_lint.fix import Fixing
from nosync_lint.pipeline import run
from nosync_lint.report import Report

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
SAMPLES = sorted({*FIXTURES.glob("*/flagged.py"), *FIXTURES.glob("*/held.py")})
SETTINGS = Settings(heat="any", target_torch=">=2.9", unsafe_fixes=True)


def fixed(sample: Path, folder: Path) -> tuple[bytes, Report]:
    """A copy of a sample with every fix made that is not for display, and the report."""
    content = sample.read_bytes()
    shutil.copy(sample, folder / "sample.py")
    (folder / "nosync-lint.toml").touch()
    report = run(["sample.py"], SETTINGS, jobs=1, cache=False, fix=Fixing.LOOK)
    return report.changed.get("sample.py", (b"", content))[1], report


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_flagged_sample_is_fixed_as_shown(sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    content, report = fixed(sample, tmp_path)
    shown = sample.with_suffix(".fixed.py")
    assert report.failures == ()
    assert shown.exists() == bool(report.fixed)
    if report.fixed:
        assert content == shown.read_bytes()
        again, second = fixed(shown, tmp_path)
        assert again == content
        assert second.fixed == ()


@pytest.mark.parametrize("fixed_sample", sorted(FIXTURES.glob("*/*.fixed.py")), ids=lambda path: path.parent.name)
def test_a_fix_leaves_one_space_where_there_is_one(fixed_sample: Path) -> None:
    lines = fixed_sample.with_name(fixed_sample.name.replace(".fixed", "")).read_text().splitlines()
    with fixed_sample.open("rb") as file:
        tokens = [one for one in tokenize.tokenize(file.readline) if one.line.rstrip("\n") not in lines]
    for one, other in pairwise(tokens):
        if one.end[0] == other.start[0] and other.type != tokenize.COMMENT:
            assert other.start[1] - one.end[1] <= 1, one.line


if __name__ == "__main__":
    for one in SAMPLES:
        os.chdir(place := Path(tempfile.mkdtemp()))
        made, told = fixed(one, place)
        if told.fixed:
            one.with_suffix(".fixed.py").write_bytes(made)
