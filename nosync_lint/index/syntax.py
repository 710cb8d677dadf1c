"""What is said of Python that cannot be parsed: also that it is Python 2, or newer than the Python that runs."""

from __future__ import annotations

import re
import sys

RUNNING = sys.version_info[:2]

_PYTHON_2 = (
    r"^\s*print\s+(?!=)[^\s(=.,\[]", r"^\s*exec\s+['\"\w]", r"^\s*except\s+[\w.()]+\s*,\s*\w+\s*:$",
    r"^\s*raise\s+[\w.]+\s*,", r"<>", r"`[^`]+`", r"\b0[0-7]+\b(?!\.)", r"\bur['\"]", r"\b\d+[lL]\b", r"^\s*print\s*>>",
)  # fmt: skip
"""Lines that only Python 2 takes."""
_NEWER = (
    (r"^\s*(?:async\s+)?def\s+\w+\s*\[|^\s*class\s+\w+\s*\[", "parameters of types", (3, 12)),
    (r"^\s*type\s+\w+\s*(?:\[.*\])?\s*=", "the statement `type`", (3, 12)),
    (r"""\b[fF][rR]?(["']).*\{.*\1""", "an f-string with its own quotes inside", (3, 12)),
    (r"""\b[tT][rR]?["']""", "a template string", (3, 14)),
    (r"^\s*except\*?\s+[\w.]+\s*(?:,\s*[\w.]+\s*)+:", "`except` without parentheses", (3, 14)),
    (r"^\s*lazy\s+(?:import|from)\b", "a lazy import", (3, 15)),
    (r"[\[({]\s*\*{1,2}\w.*\bfor\b.*\bin\b", "unpacking in a comprehension", (3, 15)),
)
"""What newer releases of Python brought, by a line that has it, and since when."""


def complaint(error: SyntaxError, running: tuple[int, int] = RUNNING) -> str:
    """Why a text cannot be parsed, and what cures it."""
    what = f"cannot be parsed as Python {running[0]}.{running[1]}: {error.msg}"
    line = error.text or ""
    newer = [(name, since) for shape, name, since in _NEWER if since > running and re.search(shape, line)]
    if newer:
        name, (major, minor) = newer[0]
        cure = f"run nosync-lint with Python {major}.{minor} or newer, or exclude the file"
        return f"{what}: {name} needs Python {major}.{minor}; {cure}"
    if any(re.search(shape, line) for shape in _PYTHON_2):
        return f"{what}: this looks like Python 2; convert it to Python 3, or exclude the file"
    return f"{what}; correct it, or exclude the file"
