"""The samples run under the guard: one of them agrees with the linter in every place."""

from __future__ import annotations

import importlib.util

import pytest

from benchmarks.crossval.__main__ import UNDER_GUARD
from benchmarks.oracle.__main__ import FIXTURES, compared
from benchmarks.oracle.judging import Verdict


@pytest.mark.skipif(importlib.util.find_spec("numpy") is None, reason="the recorder of samples needs numpy")
@pytest.mark.parametrize(("slug", "name"), [("scalar-index-write", "flagged.py"), ("sync-in-backward", "flagged.py")])
def test_linter_and_guard_agree_on_a_sample(slug: str, name: str) -> None:
    version, outcomes = compared(UNDER_GUARD, [(slug, FIXTURES / slug / name)])
    assert version.count(".") == 2
    assert [one for one in outcomes if one.verdict is Verdict.DISAGREE] == []
    assert sum(one.reported and one.verdict is Verdict.AGREE for one in outcomes) > 10
