"""What an editor can do about findings: apply the fix of one, do what `--fix` does, or say that one is meant."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from lsprotocol import types

from nosync_lint.finding import Applicability, Edit, Finding
from nosync_lint.fix.apply import compatible
from nosync_lint.server.diagnostics import diagnostic
from nosync_lint.server.documents import Document
from nosync_lint.server.positions import Positions, overlap
from nosync_lint.source import Span, is_python

FIX_ALL = f"{types.CodeActionKind.SourceFixAll.value}.nosync-lint"
KINDS = [types.CodeActionKind.QuickFix, types.CodeActionKind.SourceFixAll, FIX_ALL]
_IGNORE = re.compile(r"(?:#|//)\s*nosync-lint\s*:\s*ignore\[(?P<names>[^\]]*)\]", re.IGNORECASE)


def actions(
    document: Document, positions: Positions, place: types.Range, only: Sequence[str] | None, *, versioned: bool
) -> list[types.CodeAction]:
    """The actions for a range of a document, of the kinds that are asked for. None where its text has changed since it
    was checked: the places would be wrong. `versioned`: the client takes edits of a version of a document."""
    if not document.is_current:
        return []
    here = [one for one in document.found if overlap(positions.range(one.span), place)]
    drafts = _Drafts(document, positions, versioned)
    made: list[types.CodeAction] = []
    if _wanted(types.CodeActionKind.QuickFix.value, only):
        made += [action for finding in here for action in drafts.fixes(finding)]
        made += [action for finding in here for action in drafts.ignores(finding)]
    if _wanted(FIX_ALL, only):
        made += drafts.fix_all()
    return made


def _wanted(kind: str, only: Sequence[str] | None) -> bool:
    return only is None or any(kind == one or kind.startswith(f"{one}.") for one in only)


class _Drafts:
    """Makes the actions of one document."""

    def __init__(self, document: Document, positions: Positions, versioned: bool) -> None:
        self._document, self._positions, self._versioned = document, positions, versioned

    def fixes(self, finding: Finding) -> Iterator[types.CodeAction]:
        fix = finding.fix
        if fix is None or fix.applicability is Applicability.DISPLAY:
            return
        safe = fix.applicability is Applicability.SAFE
        yield types.CodeAction(
            title=f"{finding.code}: {fix.message}" + ("" if safe else " (unsafe: look at it)"),
            kind=types.CodeActionKind.QuickFix,
            diagnostics=[diagnostic(finding, self._positions, None)],
            is_preferred=finding in self._document.fixable,
            edit=self._edit(fix.edits),
        )

    def ignores(self, finding: Finding) -> Iterator[types.CodeAction]:
        edit = ignore(self._document, finding)
        if edit is not None:
            yield types.CodeAction(
                title=f"{finding.code}: ignore {finding.name} here (say why in the comment)",
                kind=types.CodeActionKind.QuickFix,
                diagnostics=[diagnostic(finding, self._positions, None)],
                edit=self._edit((edit,)),
            )

    def fix_all(self) -> Iterator[types.CodeAction]:
        """One action with what a round of `--fix` makes in the document: of fixes that overlap, the first."""
        document = self._document
        made = compatible([finding for finding in document.found if finding in document.fixable])
        fixes = [finding.fix for finding in made if finding.fix is not None]
        if fixes:
            safe = "safe " if all(fix.applicability is Applicability.SAFE for fix in fixes) else ""
            yield types.CodeAction(
                title=f"nosync-lint: apply {len(fixes)} {safe}fix{'es' if len(fixes) > 1 else ''}",
                kind=FIX_ALL,
                edit=self._edit([edit for fix in fixes for edit in fix.edits]),
            )

    def _edit(self, edits: Sequence[Edit]) -> types.WorkspaceEdit:
        uri, line_end = self._document.uri, self._document.line_end
        changes = [
            types.TextEdit(self._positions.range(one.span), one.content.replace("\n", line_end)) for one in edits
        ]
        if not self._versioned:
            return types.WorkspaceEdit(changes={uri: changes})
        identifier = types.OptionalVersionedTextDocumentIdentifier(uri, self._document.version)
        return types.WorkspaceEdit(document_changes=[types.TextDocumentEdit(identifier, [*changes])])


def ignore(document: Document, finding: Finding) -> Edit | None:
    """The edit that covers a finding by a comment beside it: a new one, or a name more in the one that is there."""
    lines, span = document.lines, finding.span
    rows = range(span.row, min(span.end_row, len(lines)) + 1)
    places = [document.places[row] for row in rows if row in document.places]
    for row in (*rows, *places):
        found = _IGNORE.search(lines[row - 1])
        if found is not None:
            column = found.end("names") + 1
            return Edit(Span(row, column, row, column), f", {finding.name}" if found["names"].strip() else finding.name)
    if not places:
        return None
    row, line = places[0], lines[places[0] - 1]
    mark = "#" if is_python(document.home.path) else "//"
    end = Span(row, len(line.rstrip()) + 1, row, len(line) + 1)
    return Edit(end, f"  {mark} nosync-lint: ignore[{finding.name}]")
