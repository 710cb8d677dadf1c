"""Suppression comments: which findings they cover, which of them cover none, and how those are removed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date

from nosync_lint.finding import Applicability, Edit, Fix
from nosync_lint.index import Indexed
from nosync_lint.index.cells import notebook_code
from nosync_lint.index.cuda import cuda_pragmas
from nosync_lint.index.pragmas import COVERING, FOREIGN, blanket_pragmas, python_pragmas, without
from nosync_lint.index.records import Pragma, Unreadable
from nosync_lint.rule import Suppression
from nosync_lint.source import SourceFile, Span

_ON_STATEMENTS = ("ignore", "noqa", "waiver")


class Suppressions:
    """The suppression comments of one file. Those whose last day is before `today` cover nothing any more."""

    def __init__(self, pragmas: Sequence[Pragma], lines: Callable[[], Sequence[str]], today: date) -> None:
        self._pragmas = [pragma for pragma in pragmas if pragma.form in COVERING | {"on", "unknown"}]
        self._lines, self._today = lines, today.isoformat()
        self._used: dict[Pragma, set[str]] = {}

    def cover(self, code: str, slug: str, first: int, last: int) -> Pragma | None:
        """The nearest comment that covers a finding whose statement stands in these rows. All that do count as used."""
        nearest = None
        for pragma in self.reaching(first, last):
            names = [name for name in pragma.names if name.upper() == code or name.lower() == slug]
            if names or not pragma.names:
                self._used.setdefault(pragma, set()).update(names)
                if not self._expired(pragma) and (nearest is None or pragma.row >= nearest.row):
                    nearest = pragma
        return nearest

    def reaching(self, first: int, last: int) -> list[Pragma]:
        """The comments that cover findings whose statement stands in these rows, whatever rule they name."""
        return [pragma for pragma in self._pragmas if self._reaches(pragma, first, last)]

    def _expired(self, pragma: Pragma) -> bool:
        return bool(pragma.until) and pragma.until < self._today

    def _reaches(self, pragma: Pragma, first: int, last: int) -> bool:
        if pragma.form == "skip-file":
            return True
        if pragma.form == "off" and not pragma.rows[1]:
            end = self._end(pragma)
            return pragma.row < first and (end is None or first < end.row)
        if pragma.form not in (*_ON_STATEMENTS, "off"):
            return False
        if pragma.rows[0] <= last and first <= pragma.rows[1]:
            return True
        return (
            pragma.form in _ON_STATEMENTS
            and pragma.alone
            and pragma.row < first
            and self._only_comments(pragma.row + 1, first - 1)
        )

    def _end(self, opening: Pragma) -> Pragma | None:
        """The comment that ends a region, or None where it lasts to the end of the file."""
        return next(
            (
                pragma
                for pragma in self._pragmas
                if pragma.form == "on"
                and opening.row < pragma.row
                and (not pragma.names or pragma.names == opening.names)
            ),
            None,
        )

    def _only_comments(self, first: int, last: int) -> bool:
        lines = self._lines()
        return last - first < 20 and all(
            lines[row - 1].lstrip().startswith(("#", "//")) for row in range(first, last + 1)
        )

    def sites(self, filename: str, known: Iterable[str], judged: Iterable[str]) -> Iterator[Suppression]:
        """Every comment, with whether it was needed. One that names only rules which were not judged counts as used."""
        known, judged = set(known), set(judged)
        ending = {self._end(pragma) for pragma in self._pragmas if pragma.form == "off" and not pragma.rows[1]}
        for pragma in self._pragmas:
            if pragma.form == "waiver" or (pragma.form == "noqa" and not pragma.names):
                continue  # it may be about something that another tool finds
            used = self._used.get(pragma)
            unknown = tuple(name for name in pragma.names if not _is_one_of(name, known))
            unused = tuple(
                name
                for name in pragma.names
                if name not in unknown and _is_one_of(name, judged) and name not in (used or ())
            )
            if pragma.form == "on":
                needed, unknown, unused = pragma in ending, (), ()
            else:
                needed = used is not None or (bool(pragma.names) and not unknown and len(unused) < len(pragma.names))
            yield Suppression(
                filename, Span(pragma.row, pragma.columns[0], pragma.row, pragma.columns[1]), pragma.form,
                pragma.names, unknown, pragma.reason, needed, unused, pragma.until, pragma.owner,
                self._expired(pragma) and used is not None,
                None if pragma.form == "unknown" or unknown else self._removal(pragma, unused if needed else ()),
            )  # fmt: skip

    def _removal(self, pragma: Pragma, names: Sequence[str]) -> Fix | None:
        """The fix that takes rules out of a comment, or all of it where none are given; None where nothing is to go."""
        lines = self._lines()
        if pragma.row > len(lines):
            return None  # the file has changed since it was read
        edits = [_edit(pragma, names or pragma.names, lines)]
        end = self._end(pragma) if pragma.form == "off" and not pragma.rows[1] and not names else None
        if end is not None and not any(
            other is not pragma and other.form == "off" and not other.rows[1] and self._end(other) is end
            for other in self._pragmas
        ):
            edits.append(_edit(end, end.names, lines))
        what = f"take {', '.join(names)} out of the comment" if names else "remove the comment"
        return Fix("remove-suppression", Applicability.SAFE, what, tuple(edits))


def _is_one_of(name: str, words: set[str]) -> bool:
    return name.upper() in words or name.lower() in words


def _edit(pragma: Pragma, names: Sequence[str], lines: Sequence[str]) -> Edit:
    """What takes rules out of a comment: all of it, with its row where nothing else stands there, if none are left."""
    row, (start, end) = pragma.row, pragma.columns
    line = lines[row - 1]
    before, behind = line[: start - 1], line[end - 1 :]
    kept = without(line[start - 1 : end - 1], names)
    if kept:
        return Edit(Span(row, start, row, end), kept)
    if before.strip() and not behind.strip():
        return Edit(Span(row, len(before.rstrip()) + 1, row, end), "")
    if behind.strip():
        return Edit(Span(row, start, row, end + len(behind) - len(behind.lstrip())), "")
    if row < len(lines):
        return Edit(Span(row, 1, row + 1, 1), "")
    return Edit(Span(row, 1, row, len(line) + 1), "")


def comments_of(
    files: Sequence[SourceFile],
    indexed: Sequence[Indexed],
    texts: Callable[[str], Sequence[str]],
    words: Sequence[str],
    blanket: bool,
) -> Mapping[str, Sequence[Pragma]]:
    """The comments of the reported files. `words` are those by which this project says that a wait is meant, besides
    the ones that are always known; with `blanket`, `# noqa` without codes is one as well."""
    found: dict[str, Sequence[Pragma]] = {}
    for file, one in zip(files, indexed, strict=True):
        if not file.reported or isinstance(one, Unreadable):
            continue
        pragmas: Sequence[Pragma] = one.pragmas
        if words or blanket:
            code = notebook_code(file.path.read_bytes()).data.decode() if file.is_notebook else None
            pragmas = _reread(file, pragmas, code or "\n".join(texts(file.name)), words, blanket)
        if pragmas:
            found[file.name] = pragmas
    return found


def _reread(
    file: SourceFile, pragmas: Sequence[Pragma], text: str, words: Sequence[str], blanket: bool
) -> Sequence[Pragma]:
    """The comments of a file by words that the index does not know of."""
    if words:
        read = python_pragmas if file.is_python else cuda_pragmas
        pragmas = read(text, (*FOREIGN, *words))
    return [*pragmas, *blanket_pragmas(text)] if blanket and file.is_python else pragmas
