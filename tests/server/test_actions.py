"""The edits that actions make, without a server around them."""

from __future__ import annotations

from pathlib import Path

import pytest
from lsprotocol import types
from pygls.workspace import PositionCodec

from nosync_lint.finding import Applicability, Confidence, Edit, Finding, Fix, Severity
from nosync_lint.index.cuda import cuda_comment_places
from nosync_lint.index.pragmas import comment_places
from nosync_lint.server.actions import FIX_ALL, actions, ignore
from nosync_lint.server.documents import Document, Home
from nosync_lint.source import Span

TEXT = "x[i] = 1\nt.unique()\n"
EVERYWHERE = types.Range(types.Position(0, 0), types.Position(99, 0))


def finding(span: Span, fix: Fix | None = None, name: str = "scalar-index-write") -> Finding:
    return Finding("NSL101", name, "it waits", "/p/a.py", span, Severity.ERROR, Confidence.LIKELY, "", fix=fix)


def fix(*edits: Edit, how: Applicability = Applicability.SAFE) -> Fix:
    return Fix("index-fill", how, "use index_fill_", edits)


def document(text: str, *found: Finding, name: str = "a.py") -> Document:
    path = Path("/p") / name
    places = comment_places(text) if path.suffix == ".py" else {row: row for row in cuda_comment_places(text)}
    safe = frozenset(one for one in found if one.fix is not None and one.fix.applicability is Applicability.SAFE)
    return Document(f"file:///p/{name}", Home(Path("/p"), path), text, 3, 3, found, places, safe)


def made(one: Document, *only: str) -> list[types.CodeAction]:
    return actions(one, one.positions(PositionCodec()), EVERYWHERE, only or None, versioned=True)


def edited(one: Document, action: types.CodeAction) -> str:
    """The text of a document after an action, whose edits count code points here."""
    assert action.edit is not None
    assert action.edit.document_changes is not None
    (change,) = action.edit.document_changes
    assert isinstance(change, types.TextDocumentEdit)
    rows = one.text.splitlines(keepends=True)
    text = one.text
    for edit in reversed(change.edits):
        assert isinstance(edit, types.TextEdit)
        start, end = (
            sum(map(len, rows[: at.line])) + at.character for at in (edit.range.start, edit.range.end)
        )  # fmt: skip
        text = text[:start] + edit.new_text + text[end:]
    return text


def covered(text: str, span: Span, **given: str) -> str | None:
    """The text with the comment that covers a finding."""
    one = document(text, finding(span), **given)
    edit = ignore(one, one.found[0])
    if edit is None:
        return None
    lines = text.split("\n")
    row, column, _, end = edit.span
    lines[row - 1] = lines[row - 1][: column - 1] + edit.content + lines[row - 1][end - 1 :]
    return "\n".join(lines)


def test_a_fix_becomes_a_quick_fix_that_gives_the_fixed_file() -> None:
    one = document(TEXT, finding(Span(1, 1, 1, 5), fix(Edit(Span(1, 1, 1, 9), "x.index_fill_(0, i, 1)"))))
    first, *_ = made(one, "quickfix")
    assert (first.title, first.is_preferred) == ("NSL101: use index_fill_", True)
    assert edited(one, first) == "x.index_fill_(0, i, 1)\nt.unique()\n"


def test_an_unsafe_fix_says_so_and_one_for_display_is_not_offered() -> None:
    edit = Edit(Span(1, 1, 1, 9), "")
    (unsafe, _) = made(document(TEXT, finding(Span(1, 1, 1, 5), fix(edit, how=Applicability.UNSAFE))))
    assert unsafe.title.endswith("(unsafe: look at it)")
    assert not unsafe.is_preferred
    (only_ignore,) = made(document(TEXT, finding(Span(1, 1, 1, 5), fix(edit, how=Applicability.DISPLAY))))
    assert "ignore" in only_ignore.title


def test_all_safe_fixes_are_one_action_without_those_that_overlap() -> None:
    one = document(
        TEXT,
        finding(Span(1, 1, 1, 5), fix(Edit(Span(1, 1, 1, 9), "a"))),
        finding(Span(1, 6, 1, 9), fix(Edit(Span(1, 6, 1, 9), "b"))),
        finding(Span(2, 1, 2, 11), fix(Edit(Span(2, 1, 2, 11), "c"))),
        finding(Span(2, 1, 2, 11), fix(Edit(Span(2, 1, 2, 1), "d"), how=Applicability.UNSAFE)),
    )
    (action,) = made(one, "source.fixAll")
    assert (action.kind, action.title) == (FIX_ALL, "nosync-lint: apply 2 safe fixes")
    assert edited(one, action) == "a\nc\n"
    assert made(one, FIX_ALL)[0].title == action.title
    assert made(one, "source.organizeImports") == []
    assert made(document(TEXT, finding(Span(1, 1, 1, 5))), "source.fixAll") == []


def test_new_lines_of_a_fix_end_as_those_of_the_document() -> None:
    text = TEXT.replace("\n", "\r\n")
    one = document(text, finding(Span(1, 1, 1, 5), fix(Edit(Span(1, 1, 1, 9), "a\nb"))))
    assert edited(one, made(one, "quickfix")[0]) == "a\r\nb\r\nt.unique()\r\n"


def test_clients_without_versions_get_changes_by_address() -> None:
    one = document(TEXT, finding(Span(1, 1, 1, 5), fix(Edit(Span(1, 1, 1, 9), "a"))))
    first, *_ = actions(one, one.positions(PositionCodec()), EVERYWHERE, None, versioned=False)
    assert first.edit is not None
    assert first.edit.document_changes is None
    assert first.edit.changes is not None
    assert list(first.edit.changes) == [one.uri]


def test_only_findings_in_the_range_have_actions() -> None:
    one = document(TEXT, finding(Span(1, 1, 1, 5)))
    below = types.Range(types.Position(1, 0), types.Position(1, 4))
    assert actions(one, one.positions(PositionCodec()), below, None, versioned=True) == []


IGNORED = {
    "a plain line": ("x[i] = 1\n", Span(1, 1, 1, 5), "x[i] = 1  # nosync-lint: ignore[scalar-index-write]\n"),
    "spaces at the end": ("x[i] = 1  \n", Span(1, 1, 1, 5), "x[i] = 1  # nosync-lint: ignore[scalar-index-write]\n"),
    "another comment": (
        "x[i] = 1  # todo\n",
        Span(1, 1, 1, 5),
        "x[i] = 1  # todo  # nosync-lint: ignore[scalar-index-write]\n",
    ),
    "a comment of ours": (
        "x[i] = 1  # nosync-lint: ignore[item-read] slow\n",
        Span(1, 1, 1, 5),
        "x[i] = 1  # nosync-lint: ignore[item-read, scalar-index-write] slow\n",
    ),
    "several rows": ("x[\ni\n] = 1\n", Span(1, 1, 3, 2), "x[  # nosync-lint: ignore[scalar-index-write]\ni\n] = 1\n"),
    "a continuation": ("x[i] \\\n= 1\n", Span(1, 1, 1, 5), "x[i] \\\n= 1  # nosync-lint: ignore[scalar-index-write]\n"),
    "a string that goes on": (
        "f('''\na''',\n x[i])\n",
        Span(1, 1, 1, 3),
        "f('''\na''',  # nosync-lint: ignore[scalar-index-write]\n x[i])\n",
    ),
    "a formatted string": (
        "f(f'''{x}\na''')\n",
        Span(1, 1, 1, 3),
        "f(f'''{x}\na''')  # nosync-lint: ignore[scalar-index-write]\n",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "span", "wanted"), IGNORED.values(), ids=IGNORED.keys())
def test_an_ignore_stands_where_a_comment_can(text: str, span: Span, wanted: str | None) -> None:
    assert covered(text, span) == wanted


def test_cuda_sources_have_comments_of_their_own() -> None:
    told = covered("cudaDeviceSynchronize();\n", Span(1, 1, 1, 24), name="a.cu")
    assert told == "cudaDeviceSynchronize();  // nosync-lint: ignore[scalar-index-write]\n"


def test_a_document_that_could_not_be_read_or_has_changed_has_no_actions() -> None:
    one = document(TEXT, finding(Span(1, 1, 1, 5)))
    one.places = {}
    assert made(one) == []
    two = document(TEXT, finding(Span(1, 1, 1, 5)))
    two.version = 4
    assert made(two) == []
