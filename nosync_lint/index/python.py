"""One Python file, read into a `ModuleIndex`."""

from __future__ import annotations

import ast
import sys
import warnings

from nosync_lint.index.lowering import Lowering
from nosync_lint.index.pragmas import python_pragmas
from nosync_lint.index.records import ModuleIndex
from nosync_lint.index.syntax import complaint
from nosync_lint.source import UnreadableFile

_RECURSION = 10_000
"""Room for `lowering.MAX_DEPTH` expressions inside statements nested a few hundred deep."""


def index_python(text: str) -> ModuleIndex:
    """Everything later stages know of one Python file. Raises `UnreadableFile` where it cannot be parsed."""
    tree = _parse(text)
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, _RECURSION))
    try:
        lowering = Lowering(tree)
    except RecursionError as error:
        raise UnreadableFile("is nested too deeply to analyse; split it or exclude it") from error
    finally:
        sys.setrecursionlimit(limit)
    return ModuleIndex(
        tuple(scope.record() for scope in lowering.scopes),
        tuple(lowering.classes),
        tuple(lowering.star_imports),
        python_pragmas(text),
        text.count("\n") + 1,
    )


def _parse(text: str) -> ast.Module:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes in the linted code are not ours to report
            return ast.parse(text)
    except SyntaxError as error:
        raise UnreadableFile(complaint(error), error.lineno or 1) from error
    except ValueError as error:  # lone surrogates
        raise UnreadableFile(f"cannot be parsed: {error}; save it as UTF-8") from error
    except (RecursionError, MemoryError) as error:
        raise UnreadableFile("is nested too deeply to parse; split it or exclude it") from error
