"""Which findings a project wants to be fixed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from nosync_lint.config import Settings
from nosync_lint.finding import Applicability, Finding


def fixable_by(settings: Settings) -> Callable[[Finding], bool]:
    """Which findings `--fix` would fix: those with a safe fix, or as the settings have it an unsafe one."""
    allowed = {Applicability.SAFE, Applicability.UNSAFE} if settings.unsafe_fixes else {Applicability.SAFE}

    def listed(finding: Finding, words: Sequence[str]) -> bool:
        return any(word == finding.name or finding.code.startswith(word.upper()) for word in words)

    return lambda finding: (
        finding.fix is not None
        and finding.fix.applicability in allowed
        and (not settings.fixable or listed(finding, settings.fixable))
        and not listed(finding, settings.unfixable)
    )
