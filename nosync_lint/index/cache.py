"""The index cache: one SQLite file of frozen facts by content key. Losing or damaging it costs time, never a result."""

from __future__ import annotations

import io
import pickle
import shutil
import sqlite3
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path
from typing import Any

from nosync_lint import __version__
from nosync_lint.index import cuda_records, records
from nosync_lint.index.cuda_records import CudaIndex
from nosync_lint.index.records import ModuleIndex, Unreadable
from nosync_lint.source import Span

HOME = "nosync-lint-"
"""How the folders of a version are called inside a cache folder."""


_DIGEST = 16


def freeze(facts: Any) -> bytes:
    """Facts as bytes, with a digest in front."""
    payload = pickle.dumps(facts, 5)
    return blake2b(payload, digest_size=_DIGEST).digest() + payload


def thaw(frozen: bytes) -> Any:
    """The facts in bytes that `freeze` made. Raises `ValueError` for anything else, and builds nothing but records."""
    payload = frozen[_DIGEST:]
    if blake2b(payload, digest_size=_DIGEST).digest() != frozen[:_DIGEST]:
        raise ValueError("damaged cache entry")
    return _Records(io.BytesIO(payload)).load()


_KINDS = {
    (kind.__module__, kind.__qualname__): kind
    for module in (records, cuda_records)
    for kind in vars(module).values()
    if isinstance(kind, type) and kind.__module__ == module.__name__
}
_KINDS |= {("builtins", kind.__name__): kind for kind in (frozenset, set, complex)}
_KINDS |= {(Span.__module__, Span.__qualname__): Span}


class _Records(pickle.Unpickler):
    """Builds our own record types and nothing else, whatever the bytes say."""

    def find_class(self, module: str, name: str) -> Any:
        found = _KINDS.get((module, name))  # never by attribute: a dotted name reaches whatever a module imports
        if found is None:
            raise ValueError(f"unexpected {module}.{name} in the cache")
        return found


class IndexCache:
    """Frozen facts by content key. A folder of None keeps nothing."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._connection: sqlite3.Connection | None = None
        if folder is not None:
            self._connection = _open(folder)

    def get(self, key: bytes) -> Any | None:
        """The facts under a key; None where there are none or they are damaged."""
        if self._connection is None:
            return None
        try:
            row = self._connection.execute("SELECT facts FROM entries WHERE key = ?", (key,)).fetchone()
            facts = thaw(row[0]) if row else None
            return facts if isinstance(facts, ModuleIndex | CudaIndex | Unreadable) else None
        except (sqlite3.Error, ValueError, pickle.UnpicklingError, EOFError, AttributeError, TypeError):
            return None

    def put(self, key: bytes, frozen: bytes) -> None:
        """Keep frozen facts. A cache that cannot be written is not an error of the run."""
        if self._connection is not None:
            try:
                self._connection.execute("INSERT OR REPLACE INTO entries VALUES (?, ?)", (key, frozen))
            except sqlite3.Error:
                self._connection = None

    def commit(self) -> None:
        if self._connection is not None:
            try:
                self._connection.commit()
                self._connection.close()
            except sqlite3.Error:
                pass  # another process holds the file: the entries are made again next time
            self._connection = None


def _open(folder: Path) -> sqlite3.Connection | None:
    """The database of this version. Only a folder that we make ourselves is marked as a cache."""
    try:
        if not folder.exists():
            folder.mkdir(parents=True)
            (folder / ".gitignore").write_text("*\n")
            (folder / "CACHEDIR.TAG").write_text("Signature: 8a477f597d28d172789f06886806bc55\n")
        home = folder / f"{HOME}{__version__}"
        home.mkdir(exist_ok=True)
        return _connect(home / f"index-{_analyser()}.sqlite")
    except (OSError, sqlite3.Error):
        return None


def _analyser() -> str:
    """A name for the code that makes the facts: other code makes others."""
    digest = blake2b(digest_size=8)
    here = Path(__file__).parent
    for path in [here.parent / "source.py", *sorted(here.glob("*.py"))]:
        digest.update(path.read_bytes())
    digest.update(version("tree-sitter-cuda").encode())
    return digest.hexdigest()


def _connect(path: Path) -> sqlite3.Connection:
    try:
        return _prepare(path)
    except sqlite3.DatabaseError as error:
        if isinstance(error, sqlite3.OperationalError):
            raise  # another process holds it: this run does without
        path.unlink(missing_ok=True)  # truncated or not a database: start again
        return _prepare(path)


def _prepare(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=5)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=OFF")
    connection.execute("CREATE TABLE IF NOT EXISTS entries (key BLOB PRIMARY KEY, facts BLOB NOT NULL)")
    connection.execute("SELECT key FROM entries LIMIT 1").fetchone()
    return connection


def clean(folder: Path) -> bool:
    """Remove what we keep in a cache folder, and the folder if nothing else is in it; false where we keep nothing."""
    homes = [home for home in folder.glob(f"{HOME}*") if home.is_dir() and not home.is_symlink()]
    for home in homes:
        for file in home.glob("index-*.sqlite*"):
            file.unlink()
        if not any(home.iterdir()):
            home.rmdir()
    if homes and {entry.name for entry in folder.iterdir()} == {".gitignore", "CACHEDIR.TAG"}:
        shutil.rmtree(folder)
    return bool(homes)
