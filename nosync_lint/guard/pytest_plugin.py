"""Guards for tests: a marker, a fixture, options, and a section at the end that says what was seen where.

The test itself is guarded. Its fixtures are set up and torn down with the device there and nothing counted. What is
seen travels with the reports of the tests, so it arrives from other processes as well. This is imported by every run of
pytest: the guard is imported when the first guarded test is set up, and torch with it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

import pytest

from nosync_lint.guard.levels import BACKENDS, Level

if TYPE_CHECKING:
    from nosync_lint.guard.events import Event, GuardReport
    from nosync_lint.guard.sessions import Guard

OFF = "off"
LEVELS = (OFF, *Level)
MARKER = (
    "nosync(level=..., max_syncs=0, d2h=..., h2d=..., wait=..., backend=...): the test fails where the host would wait "
    "for a device; see nosync_lint.guard.guard"
)
_GUARD: pytest.StashKey[Guard] = pytest.StashKey()
Seen = dict[str, Any]
"""One event as it travels with the report of a test."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options, and their defaults in the configuration."""
    group = parser.getgroup("nosync", "waits of the host for a device")
    group.addoption(
        "--nosync",
        choices=LEVELS,
        metavar="LEVEL",
        help=f"level of marked tests that name none: {', '.join(Level)}, or off for no guards",
    )
    group.addoption(
        "--nosync-all", action="store_true", help="guard the tests without a marker, too, and only report what they do"
    )
    parser.addini("nosync_level", "level of marked tests that name none (disallow)", default=Level.DISALLOW.value)
    parser.addini("nosync_backend", f"one of {', '.join(BACKENDS)}", default=BACKENDS[0])


def pytest_configure(config: pytest.Config) -> None:
    """Declares the marker. Raises `UsageError` for a level in the configuration that is none."""
    config.addinivalue_line("markers", MARKER)
    if config.getini("nosync_level") not in LEVELS:
        raise pytest.UsageError(f"nosync_level must be one of {', '.join(LEVELS)}")
    config.pluginmanager.register(Summary(), "nosync-summary")


@pytest.fixture
def nosync(request: pytest.FixtureRequest) -> GuardReport:
    """The report of the guard around this test, which is opened for it where the test has no marker."""
    from nosync_lint.guard.events import GuardReport

    found = request.node.stash.get(_GUARD, None)
    return found.report if found is not None else GuardReport()


def _guard_of(item: pytest.Item) -> Guard | None:
    """The guard of a test, where it has one: by its marker, by the fixture, or because all have one."""
    level = item.config.getoption("--nosync") or item.config.getini("nosync_level")
    marker = item.get_closest_marker("nosync")
    if level == OFF:
        return None
    if marker is None and "nosync" not in getattr(item, "fixturenames", ()):
        level = Level.ALLOW if item.config.getoption("--nosync-all") else OFF
    if level == OFF:
        return None
    from nosync_lint.guard.sessions import guard

    options = {"level": level, "backend": item.config.getini("nosync_backend"), **(marker.kwargs if marker else {})}
    if marker is not None and marker.args:
        raise pytest.UsageError(f"{item.nodeid}: nosync takes keywords only: {MARKER}")
    return guard(**options)


def _device() -> Guard:
    from nosync_lint.guard.sessions import guard

    return guard(level=Level.ALLOW)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, object, object]:
    """Makes the guard of a test. Its fixtures may use the device."""
    made = _guard_of(item)
    if made is None:
        return (yield)
    item.stash[_GUARD] = made
    with _device():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Runs a test under its guard."""
    made = item.stash.get(_GUARD, None)
    if made is None:
        return (yield)
    with made:
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    """Its fixtures may use the device while they are torn down."""
    if item.stash.get(_GUARD, None) is None:
        return (yield)
    with _device():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A refused wait is shown as such, without the frames of the guard and of torch."""
    report = yield
    made = item.stash.get(_GUARD, None)
    if made is not None and report.when == "call":
        from nosync_lint.guard.events import SyncError

        report.nosync = [_seen(event) for event in made.report.events]  # type: ignore[attr-defined]
        if call.excinfo is not None and isinstance(call.excinfo.value, SyncError) and report.failed:
            report.longrepr = str(call.excinfo.value)
    return report


def _seen(event: Event) -> Seen:
    answer = event.allowed if event.allowed is not None else event.suppressed
    return {
        "place": event.place,
        "rule": f"{event.code} {event.name}",
        "direction": event.direction.value,
        "hidden": event.hidden,
        "answer": answer,
    }


class Summary:
    """What all tests of the run saw."""

    def __init__(self) -> None:
        self._guarded = 0
        self._times: Counter[tuple[str, str]] = Counter()
        self._tests: dict[tuple[str, str], set[str]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Takes in what one test saw, wherever it ran."""
        seen: list[Seen] | None = getattr(report, "nosync", None)
        if seen is None:
            return
        self._guarded += 1
        for one in seen:
            answer = one["answer"]
            how = one["direction"] + (", may wait" if one["hidden"] else "")
            how += "" if answer is None else f", allowed: {answer}" if answer else ", allowed"
            key = one["place"], f"{one['rule']} [{how}]"
            self._times[key] += 1
            self._tests.setdefault(key, set()).add(report.nodeid)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """One line for each place and rule, in the order of the files."""
        if not self._guarded:
            return
        terminalreporter.section("waits of the host for a device")
        for key in sorted(self._times, key=_in_order):
            times, tests = self._times[key], len(self._tests[key])
            terminalreporter.line(f"{key[0]} {key[1]} {times}x in {tests} test{'s'[: tests != 1]}")
        waits = sum(self._times.values())
        terminalreporter.line(f"{waits} waits in {self._guarded} guarded tests")


def _in_order(key: tuple[str, str]) -> tuple[str, int, int, str]:
    name, row, column = key[0].rsplit(":", 2)
    return name, int(row), int(column), key[1]
