"""Finds hidden host-device synchronisations in PyTorch code before it runs.

    >>> import nosync_lint
    >>> report = nosync_lint.check(["src"])

What is public is listed in `__all__`. It is imported when it is first used, so that `import nosync_lint` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nosync_lint.api import check, settings_for
    from nosync_lint.config import ConfigError, Settings
    from nosync_lint.discover import MissingPath
    from nosync_lint.finding import (
        Applicability,
        Confidence,
        Edit,
        Finding,
        Fix,
        Heat,
        Hop,
        Severity,
        Suppressed,
    )
    from nosync_lint.registry import RulesMissing
    from nosync_lint.report import Hidden, Report
    from nosync_lint.source import Span

__version__ = "0.1.0"

__all__ = [
    "Applicability",
    "Confidence",
    "ConfigError",
    "Edit",
    "Finding",
    "Fix",
    "Heat",
    "Hidden",
    "Hop",
    "MissingPath",
    "Report",
    "RulesMissing",
    "Settings",
    "Severity",
    "Span",
    "Suppressed",
    "check",
    "settings_for",
]

if not TYPE_CHECKING:  # a type checker sees the imports above, and reports names that are not among them
    _HOMES = {
        "api": ("check", "settings_for"),
        "config": ("ConfigError", "Settings"),
        "discover": ("MissingPath",),
        "finding": (
            "Applicability", "Confidence", "Edit", "Finding", "Fix", "Heat", "Hop", "Severity", "Suppressed",
        ),
        "registry": ("RulesMissing",),
        "report": ("Hidden", "Report"),
        "source": ("Span",),
    }  # fmt: skip

    def __getattr__(name):
        for module, names in _HOMES.items():
            if name in names:
                return getattr(import_module(f"nosync_lint.{module}"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__():
        return sorted([*globals(), *__all__])
