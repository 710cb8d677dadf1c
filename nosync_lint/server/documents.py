"""Open documents: what the editor holds of them, what was found in them, and which project they belong to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from pygls.uris import to_fs_path, uri_scheme
from pygls.workspace import PositionCodec

from nosync_lint.config import FILES, find_config
from nosync_lint.discover import SKIPPED_FOLDERS, is_source, root_of
from nosync_lint.finding import Finding
from nosync_lint.fix.apply import line_end
from nosync_lint.server.positions import Positions
from nosync_lint.source import NOTEBOOK_SUFFIXES, encode, is_python, lines_of


@dataclass(frozen=True, slots=True)
class Home:
    """The project of a document. `folder` is where the linter runs and `path` what it takes the document for; `shared`
    is false for a document that belongs to no project and is checked by itself."""

    folder: Path
    path: Path
    shared: bool = True

    @property
    def is_skipped(self) -> bool:
        """Whether the document lies in a folder that holds no sources of the project, such as an environment."""
        inside = self.path.is_relative_to(self.folder)
        return inside and not SKIPPED_FOLDERS.isdisjoint(self.path.relative_to(self.folder).parts[:-1])


@dataclass
class Document:
    """An open document. `found` is what was found in the version `checked`, `places` are the rows at whose end a
    comment about a row may stand, and `fixable` are the findings that `--fix` would fix."""

    uri: str
    home: Home
    text: str
    version: int | None
    checked: int | None = None
    found: tuple[Finding, ...] = ()
    places: Mapping[int, int] = field(default_factory=dict)
    fixable: frozenset[Finding] = frozenset()

    @property
    def is_current(self) -> bool:
        """Whether what was found is about the text as it is now."""
        return self.checked is not None and self.checked == self.version

    @property
    def content(self) -> bytes:
        """What stands for the file on disk."""
        return encode(self.text, is_python(self.home.path))

    @property
    def lines(self) -> list[str]:
        return lines_of(self.text)

    @property
    def line_end(self) -> str:
        return line_end(self.text)

    def positions(self, codec: PositionCodec) -> Positions:
        return Positions(self.lines, codec)


class Homes:
    """Finds the projects of documents."""

    def __init__(self) -> None:
        self._alone = TemporaryDirectory(prefix="nosync-lint-")
        self._places: dict[str, Path] = {}

    def close(self) -> None:
        self._alone.cleanup()

    def of(self, uri: str, language: str, folders: Iterable[Path]) -> Home | None:
        """The project of a document, given the folders of the workspace; None for what is not linted.

        That is the folder of the configuration nearest to it, else the folder of the workspace that it lies in, else
        its repository or package. What belongs to nothing is a project of its own, and so is a document without a file
        where no folder is open.
        """
        scheme = uri_scheme(uri)
        if scheme == "untitled" and language == "python":
            folder = next(iter(folders), None)
            name = uri.rpartition(":")[2].rpartition("/")[2]
            return Home(folder, folder / name) if folder is not None else self._by_itself(uri, name)
        found = to_fs_path(uri) if scheme == "file" else None
        if found is None:
            return None
        path = Path(found).resolve()
        if not (is_source(path) or language == "python") or path.suffix.lower() in NOTEBOOK_SUFFIXES:
            return None
        config = find_config(path.parent)
        if config is not None:
            return Home(config.parent, path)
        around = [folder for folder in folders if path.is_relative_to(folder)]
        folder = max(around, key=lambda one: len(one.parts), default=None) or root_of(path.parent)
        return Home(folder, path) if folder is not None else self._by_itself(uri, path.name)

    def _by_itself(self, uri: str, name: str) -> Home:
        """An empty project for one document: its folder may be anything, such as that of the user."""
        if uri not in self._places:
            folder = Path(self._alone.name).resolve() / str(len(self._places))
            folder.mkdir()
            (folder / FILES[0]).touch()
            self._places[uri] = folder
        return Home(self._places[uri], self._places[uri] / name, shared=False)
