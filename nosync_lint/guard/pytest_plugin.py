"""Guards for tests: a marker, a fixture, options, and a section at the end that says what was seen where.

The test itself is guarded. Its fixtures are set up and torn down with the device there and nothing counted. What is
seen travels with the reports of the tests, so it arrives from other processes as well. This is imported by every run of
pytest: the guard is imported when the first guarded test is set up, and torch with it.
"""

from __future__ import annotations

import json
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from nosync_lint.guard.levels import BACKENDS, Level
from nosync_lint.plural import counted

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
_BASELINE: pytest.StashKey[frozenset[str]] = pytest.StashKey()


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
    group.addoption(
        "--nosync-json", type=Path, metavar="FILE", help="write what guarded tests did, as the linter's JSON"
    )
    group.addoption(
        "--nosync-baseline", type=Path, metavar="FILE", help="a baseline of the linter: only waits that it lacks fail"
    )
    group.addoption(
        "--nosync-write-baseline", action="store_true", help="add what guarded tests do to that file; no wait fails"
    )
    parser.addini("nosync_level", "level of marked tests that name none (disallow)", default=Level.DISALLOW.value)
    parser.addini("nosync_backend", f"one of {', '.join(BACKENDS)}", default=BACKENDS[0])


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Puts what records the CUDA runtime in its place before anything imports torch. Raises `UsageError`."""
    backend = early_config.getini("nosync_backend")
    if backend in ("cuda", "stub"):
        from nosync_lint.guard import listener, stub

        try:
            (listener if backend == "cuda" else stub).load()
        except stub.StubError as error:
            raise pytest.UsageError(f"nosync_backend={backend}: {error}") from error


def pytest_configure(config: pytest.Config) -> None:
    """Declares the marker. Raises `UsageError` for settings that cannot be used."""
    config.addinivalue_line("markers", MARKER)
    if config.getini("nosync_level") not in LEVELS:
        raise pytest.UsageError(f"nosync_level must be one of {', '.join(LEVELS)}")
    path, writes = config.getoption("--nosync-baseline"), config.getoption("--nosync-write-baseline")
    config.stash[_BASELINE] = _known(path, writes)
    written = path if writes else None
    config.pluginmanager.register(Summary(config.getoption("--nosync-json"), written), "nosync-summary")


def _known(path: Path | None, writes: bool) -> frozenset[str]:
    """The fingerprints that a baseline accepts. Raises `UsageError` for a file that is none."""
    if path is None:
        if writes:
            raise pytest.UsageError("--nosync-write-baseline needs a file: give --nosync-baseline=FILE")
        return frozenset()
    if writes and not path.exists():
        return frozenset()
    from nosync_lint.baseline import BaselineError
    from nosync_lint.guard.accepted import fingerprints

    try:
        return fingerprints(path)
    except BaselineError as error:
        raise pytest.UsageError(f"--nosync-baseline {error}") from error


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

    options = {
        "level": level,
        "backend": item.config.getini("nosync_backend"),
        "baseline": item.config.stash[_BASELINE],
        **(marker.kwargs if marker else {}),
        **({"level": Level.ALLOW} if item.config.getoption("--nosync-write-baseline") else {}),
    }
    if marker is not None and marker.args:
        raise pytest.UsageError(f"{item.nodeid}: nosync takes keywords only: {MARKER}")
    try:
        return guard(**options)
    except (TypeError, ValueError) as error:
        raise pytest.UsageError(f"{item.nodeid}: {error}: {MARKER}") from error


def _device() -> Guard:
    from nosync_lint.guard.sessions import guard

    return guard(level=Level.ALLOW)


@pytest.hookimpl(wrapper=True, trylast=True)  # inside of what others count on when a guard cannot be made
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
        from nosync_lint.guard.events import EarlyReadError, SyncError

        report.nosync = [event.as_record() for event in made.report.events]  # type: ignore[attr-defined]
        report.nosync_early = [read.as_record() for read in made.report.early_reads]  # type: ignore[attr-defined]
        report.nosync_release = made.report.release  # type: ignore[attr-defined]
        if call.excinfo is not None and isinstance(call.excinfo.value, SyncError | EarlyReadError) and report.failed:
            report.longrepr = str(call.excinfo.value)
    return report


class Summary:
    """What all tests of the run saw. Where the run is spread over processes, that of the first one has all of it."""

    def __init__(self, path: Path | None, baseline: Path | None) -> None:
        self._path, self._baseline = path, baseline
        self._guarded = 0
        self._release = ""
        self._seen: list[tuple[str, dict[str, Any]]] = []
        self._early: list[dict[str, Any]] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Takes in what one test saw, wherever it ran."""
        records: list[dict[str, Any]] | None = getattr(report, "nosync", None)
        if records is not None:
            self._guarded += 1
            self._release = getattr(report, "nosync_release", "")
            self._seen += [(report.nodeid, record) for record in records]
            self._early += getattr(report, "nosync_early", [])

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """One line for each place and rule, in the order of the files; and the file that was asked for."""
        if not self._guarded and self._path is None and self._baseline is None:
            return
        from nosync_lint.guard.events import EarlyRead, Event, GuardReport

        seen = [(test, Event.from_record(record)) for test, record in self._seen]
        tests: dict[tuple[str, int, int, str], list[str]] = {}
        for test, event in seen:
            tests.setdefault((event.filename, event.span.row, event.span.column, _told(event)), []).append(test)
        terminalreporter.section("waits of the host for a device")
        for (filename, row, column, told), where in sorted(tests.items()):
            count = counted(len(set(where)), "test")
            terminalreporter.line(f"{filename}:{row}:{column} {told} {len(where)}x in {count}")
        for read in map(EarlyRead.from_record, self._early):
            terminalreporter.line(f"{read.place} read before the wait for the copy at {read.copied}")
        terminalreporter.line(f"{counted(len(seen), 'wait')} in {counted(self._guarded, 'guarded test')}")
        if self._path is not None:
            report = GuardReport(self._release, [event for _, event in seen])
            self._path.write_text(json.dumps(report.to_json(), indent=2) + "\n", encoding="utf-8")
        if self._baseline is not None:
            from nosync_lint.guard.accepted import accept

            added = accept(self._baseline, [event for _, event in seen])
            terminalreporter.line(f"{counted(added, 'entry', 'entries')} added to {self._baseline}")


def _told(event: Event) -> str:
    answer = event.allowed if event.allowed is not None else event.suppressed
    how = event.direction.value + (", may wait" if event.hidden else "")
    how += "" if answer is None else f", allowed: {answer}" if answer else ", allowed"
    return f"{event.code} {event.name} [{how}]"
