"""Numbers with what they count, as a sentence has them."""

from __future__ import annotations


def counted(count: int, one: str, many: str = "") -> str:
    """ "1 file", "2 files", "1,000 entries"; `many` where it is not `one` with an s."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"
