"""The catalogue: one file per defect."""

from __future__ import annotations

from nosync_lint.rule import Retired

RETIRED: tuple[Retired, ...] = ()
"""The codes and slugs that rules once had. They stay here for good: a code is never used again."""
