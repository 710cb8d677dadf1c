"""The result of a run, and the formats it is written in: one module per format."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from nosync_lint.finding import Finding, RuleFacts, Severity, Suppressed

if TYPE_CHECKING:
    from nosync_lint.baseline import Baseline


@dataclass(frozen=True, slots=True)
class Hidden:
    """Findings that were made and are not shown: by heat, by confidence, suppressed in the source, ignored in their
    files, accepted by the baseline, in files that did not change since the given revision, and in functions that the
    configuration calls cures."""

    warm: int = 0
    cold: int = 0
    unreached: int = 0
    possible: int = 0
    likely: int = 0
    suppressed: int = 0
    ignored: int = 0
    baselined: int = 0
    unchanged: int = 0
    cured: int = 0


@dataclass(frozen=True, slots=True)
class Report:
    """Everything a format needs. `sources` maps the file names of shown findings and hops to their lines.

    `failures` are rules that crashed and configuration that could not be used: each makes the run end with 2.
    `notes` are for the reader and change nothing: no hot root found, calls left unresolved.
    `suppressed` are findings that comments or the baseline cover, whatever their heat.
    `rules` are those that were asked, by code. `fail_on` is the least severity that makes the run end with 1.
    `program` is kept alive for questions after the run. `baseline` is the one to write down, where that is asked for.
    `owners` maps file names to those who own them, where the repository says so.
    `fixed` are findings that the fixes of this run have cured, and `changed` the files that they change: what they held
    and what they hold instead. `fixable` says which of the findings a run with `--fix` would fix; `in_notebooks` counts
    those that it would if they did not stand in notebooks, which are left alone.
    """

    findings: tuple[Finding, ...]
    hidden: Hidden = Hidden()
    files_reported: int = 0
    files_linked: int = 0
    calls_resolved: int = 0
    calls_unresolved: int = 0
    target_torch: tuple[str, ...] = ()
    seconds: float = 0.0
    failures: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    program: object = field(default=None, repr=False, compare=False)
    sources: dict[str, tuple[str, ...]] = field(default_factory=dict)
    suppressed: tuple[Suppressed, ...] = ()
    fail_on: Severity = Severity.WARNING
    rules: tuple[RuleFacts, ...] = ()
    baseline: Baseline | None = None
    owners: dict[str, str] = field(default_factory=dict)
    fixed: tuple[Finding, ...] = ()
    changed: dict[str, tuple[bytes, bytes]] = field(default_factory=dict)
    in_notebooks: int = 0
    fixable: Callable[[Finding], bool] = field(default=lambda finding: False, repr=False, compare=False)

    @property
    def exit_code(self) -> int:
        """0 clean, 1 findings at `fail_on` or above, 2 when something failed."""
        if self.failures:
            return 2
        return 1 if any(finding.severity.reaches(self.fail_on) for finding in self.findings) else 0
