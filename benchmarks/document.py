"""Documents with parts that commands write: a part stands between two comments that carry its name."""

from __future__ import annotations

import datetime
import os
import platform
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path

DOCS = Path(__file__).resolve().parent.parent / "docs"


def write_part(document: Path, name: str, text: str) -> None:
    """Put `text` where the document says that the part of this name stands. Raises `ValueError` if it does not say."""
    old = document.read_text(encoding="utf-8")
    first, last = f"<!-- {name}: written by a command -->\n", f"<!-- end of {name} -->\n"
    before, found, rest = old.partition(first)
    _, ended, after = rest.partition(last)
    if not (found and ended):
        raise ValueError(
            f"{document.name} has no part {name}: it begins with `{first.strip()}`, ends with `{last.strip()}`"
        )
    document.write_text(f"{before}{first}\n{text.strip()}\n\n{last}{after}", encoding="utf-8", newline="\n")


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def circumstances(*versions: str) -> str:
    """What the numbers of a part depend on; the versions of torch are the installed one unless given."""
    torches = ", ".join(versions) or version("torch").partition("+")[0]
    return (
        f"torch {torches}, Python {platform.python_version()}, {platform.machine()}, "
        f"{len(os.sched_getaffinity(0))} processors, {datetime.date.today():%-d %B %Y}."
    )
