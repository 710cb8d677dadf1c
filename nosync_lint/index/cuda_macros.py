"""Function-attribute macros are blanked before parsing, with spaces of the same length: places stay true.

A C++ grammar knows no project's macros. One unknown word before a return type turns the function into an
error region, and with it everything inside. Blanked are the words that conventions and this file's own
`#define` lines show to be attributes, and CUDA attributes that the grammar does not know.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_DEFINE = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)(?:[ \t]+((?:[^\n\\]|\\[ \t]*\r?\n|\\)*))?", re.MULTILINE)
_WORD = re.compile(r"\w+")
_ATTRIBUTE_BODY = re.compile(
    r"(?:\s|\\|__(?:global|device|host|forceinline|noinline|inline)__|inline|static|constexpr"
    r"|__(?:launch_bounds|cluster_dims|attribute|maxnreg|align)__\s*\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)"
    r"|\[\[\w+\]\]|__declspec\(\w+\))+"
)
_CONVENTION = re.compile(
    r"\b[A-Z][A-Z0-9_]*_(?:DEVICE|HOST|HOSTDEVICE|INLINE|FORCEINLINE|FORCE_INLINE|NOINLINE|API|EXPORT|FN|FUNC|"
    r"KERNEL|CALLABLE|DECORATOR|QUALIFIER|INTERNAL|NODISCARD)\b(?=[ \t\r\n]+[A-Za-z_:\[])"
)
_CALLED = re.compile(
    r"\b(?:__cluster_dims__|__maxnreg__|__align__|[A-Z][A-Z0-9]*_LAUNCH_BOUNDS(?:_\d)?)[ \t]*\([^()\n]*\)"
)
_CALLABLE = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)\(([^()\n]*)\)((?:[^\n\\]|\\[ \t]*\r?\n|\\)*)", re.MULTILINE)
_LONGEST_BODY = 20_000
_DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\[ \t]*\r?\n|\\)*", re.MULTILINE)


def blank_macros(text: str) -> str:
    """`text` with attribute macros replaced by spaces; rows, columns and length are unchanged."""
    if "\0" in text:
        text = text.replace("\0", " ")
    own = {
        match[1]
        for match in _DEFINE.finditer(text)
        if match[2] and not match[2].startswith("(") and _ATTRIBUTE_BODY.fullmatch(match[2])
    }
    pieces, start = [], 0
    for directive in _DIRECTIVE.finditer(text):
        pieces += [_blank(text[start : directive.start()], own), directive[0]]
        start = directive.end()
    pieces.append(_blank(text[start:], own))
    return "".join(pieces)


def _blank(code: str, own: set[str]) -> str:
    code = _CALLED.sub(_spaces, _CONVENTION.sub(_spaces, code))
    if own:
        code = _WORD.sub(lambda match: _spaces(match) if match[0] in own else match[0], code)
    return code


def _spaces(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match[0])


class CallableMacro(NamedTuple):
    """A function-like macro of this file: its body is code, and starts on `row`."""

    parameters: tuple[str, ...]
    body: str
    row: int


def callable_macros(text: str) -> dict[str, CallableMacro]:
    """Function-like macros by name; of one defined twice, the last."""
    found = {}
    for match in _CALLABLE.finditer(text) if "define" in text else ():
        if "(" in match[3] and len(match[3]) <= _LONGEST_BODY:
            parameters = tuple(
                part.strip().replace("...", "__VA_ARGS__") for part in match[2].split(",") if part.strip()
            )
            row = text.count("\n", 0, match.start(3)) + 1
            found[match[1]] = CallableMacro(parameters, re.sub(r"\\(?=[ \t]*\r?\n)", " ", match[3]), row)
    return found
