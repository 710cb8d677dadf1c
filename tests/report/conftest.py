"""A browser for tests of the page, where there is one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.report.browser import Browser, found, opened


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One browser for all tests. Without Chromium and its driver, those that need it are skipped."""
    programs = found()
    if programs is None:
        pytest.skip("needs chromium and chromedriver: on Debian, `apt-get install chromium chromium-driver`")
    with opened(*programs, tmp_path_factory.mktemp("profile")) as window:
        yield window
