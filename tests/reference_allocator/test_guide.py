"""The guide runs: its blocks one after another, as a reader would run them."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from pathlib import Path

import pytest

from reference_allocator import verify

pytestmark = pytest.mark.host("the guide is written for pools in CPU memory")

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "allocator_guide.md"
TEXT = GUIDE.read_text(encoding="utf-8")
BLOCKS = [
    "\n" * TEXT.count("\n", 0, block.start(1)) + block[1]  # so that an error names the line of the guide
    for block in re.finditer(r"^```python\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)
]
FUSED = [block for block in BLOCKS if '"fused"' in block]
COMPILER = shlex.split(os.environ.get("CXX", "g++"))[0]


def run(blocks: list[str]) -> dict[str, object]:
    names: dict[str, object] = {"__name__": __name__}
    for block in blocks:
        exec(compile(block, str(GUIDE), "exec"), names)
    return names


def test_all_blocks_but_the_fused_one_run_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    names = run([block for block in BLOCKS if block not in FUSED])
    assert "freed twice or stale" in capsys.readouterr().out
    assert names["preempted"]  # the scheduler ran out of room, and went on
    for allocator in ("cache", "hybrid", "static"):
        assert verify.verify(names[allocator]) == []  # type: ignore[arg-type]


@pytest.mark.skipif(shutil.which(COMPILER) is None, reason=f"{COMPILER} is not installed")
def test_the_fused_block_runs() -> None:
    assert len(FUSED) == 1
    names = run([BLOCKS[0], *FUSED])
    assert verify.verify(names["fused"]) == []  # type: ignore[arg-type]


def test_the_guide_is_linked_where_its_readers_look() -> None:
    root = GUIDE.parents[1]
    assert "(docs/allocator_guide.md)" in (root / "README.md").read_text(encoding="utf-8")
    assert "(../docs/allocator_guide.md)" in (root / "reference_allocator" / "README.md").read_text(encoding="utf-8")
