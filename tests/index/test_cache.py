"""The index cache: it saves time and never changes a result."""

from __future__ import annotations

import pickle
import sqlite3
from hashlib import blake2b
from pathlib import Path

import pytest

import nosync_lint.index as stage
from nosync_lint.index import Indexed, content_key, index
from nosync_lint.index.cache import IndexCache, clean, freeze, thaw
from nosync_lint.index.python import index_python
from nosync_lint.index.records import ModuleIndex, Unreadable
from nosync_lint.source import SourceFile

LIMIT = 10_000_000


def files(folder: Path, **texts: str) -> list[SourceFile]:
    made = []
    for name, text in texts.items():
        path = folder / f"{name}.py"
        path.write_text(text)
        made.append(SourceFile(path, path.name))
    return made


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """What is really parsed, in this process."""
    seen: list[bytes] = []
    real = stage.index_one

    def spy(data: bytes, is_python: bool) -> Indexed:
        seen.append(data)
        return real(data, is_python)

    monkeypatch.setattr(stage, "index_one", spy)
    return seen


def run(tmp_path: Path, sources: list[SourceFile]) -> list[Indexed]:
    return index(sources, IndexCache(tmp_path / "cache"), 1, LIMIT)


def test_an_unchanged_file_is_not_parsed_again(tmp_path: Path, parsed: list[bytes]) -> None:
    sources = files(tmp_path, a="x = 1\n", b="y = 2\n")
    first = run(tmp_path, sources)
    assert len(parsed) == 2
    assert run(tmp_path, sources) == first
    assert len(parsed) == 2
    (tmp_path / "a.py").write_text("x = 3\n")
    assert run(tmp_path, sources) != first
    assert parsed[2:] == [b"x = 3\n"]


def test_the_key_is_the_content_and_not_the_name(tmp_path: Path, parsed: list[bytes]) -> None:
    run(tmp_path, files(tmp_path, a="x = 1\n"))
    run(tmp_path, files(tmp_path, b="x = 1\n"))
    assert len(parsed) == 1


def test_the_same_bytes_in_another_language_have_another_key() -> None:
    assert content_key(b"x", True) != content_key(b"x", False)
    assert content_key(b"x", True) != content_key(b"y", True)


def test_an_unreadable_file_is_remembered_too(tmp_path: Path, parsed: list[bytes]) -> None:
    sources = files(tmp_path, a="x = = 1\n")
    first, second = run(tmp_path, sources), run(tmp_path, sources)
    assert isinstance(first[0], Unreadable)
    assert first == second
    assert len(parsed) == 1


def test_without_a_folder_nothing_is_kept(tmp_path: Path, parsed: list[bytes]) -> None:
    sources = files(tmp_path, a="x = 1\n")
    index(sources, IndexCache(None), 1, LIMIT)
    index(sources, IndexCache(None), 1, LIMIT)
    assert len(parsed) == 2
    assert {path.name for path in tmp_path.iterdir()} == {"a.py"}


def database(tmp_path: Path) -> Path:
    (found,) = (tmp_path / "cache").rglob("*.sqlite")
    return found


@pytest.mark.parametrize("damage", [b"", b"not a database, but long enough to be read as the head of one" * 50])
def test_a_damaged_database_is_made_again(tmp_path: Path, parsed: list[bytes], damage: bytes) -> None:
    sources = files(tmp_path, a="x = 1\n")
    first = run(tmp_path, sources)
    path = database(tmp_path)
    for side in path.parent.glob(path.name + "-*"):
        side.unlink()
    path.write_bytes(damage)
    assert run(tmp_path, sources) == first
    assert run(tmp_path, sources) == first
    assert len(parsed) == 2


@pytest.mark.parametrize("entry", [b"", b"short", b"x" * 100, freeze((1,))[:-1]])
def test_a_damaged_entry_is_parsed_again(tmp_path: Path, parsed: list[bytes], entry: bytes) -> None:
    sources = files(tmp_path, a="x = 1\n")
    first = run(tmp_path, sources)
    with sqlite3.connect(database(tmp_path)) as connection:
        connection.execute("UPDATE entries SET facts = ?", (entry,))
    connection.close()
    assert run(tmp_path, sources) == first
    assert len(parsed) == 2


def test_a_folder_that_cannot_be_written_costs_only_time(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file stands where the folder would be")
    sources = files(tmp_path, a="x = 1\n")
    assert isinstance(run(tmp_path, sources)[0], ModuleIndex)


class Harmful:
    def __reduce__(self) -> tuple[object, ...]:
        return (Path.touch, (Path("was_run"),))


def test_an_entry_builds_nothing_but_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    payload = pickle.dumps(Harmful())
    with pytest.raises(ValueError, match="unexpected"):
        thaw(blake2b(payload, digest_size=16).digest() + payload)
    assert not (tmp_path / "was_run").exists()


@pytest.mark.parametrize("name", [b"codecs.builtins.eval", b"codecs", b"stat.os.system"])
def test_an_entry_reaches_nothing_that_our_modules_import(name: bytes) -> None:
    payload = b"\x80\x04\x8c\x12nosync_lint.source\x8c" + bytes([len(name)]) + name + b"\x93\x8c\x011\x85R."
    with pytest.raises(ValueError, match="unexpected"):
        thaw(blake2b(payload, digest_size=16).digest() + payload)


def test_facts_are_the_same_after_freezing() -> None:
    facts = index_python("class A:\n    x: int = 3j\n    def f(self): global g; self.t[1] = -1\n")
    assert thaw(freeze(facts)) == facts


def test_worker_processes_give_the_same_facts_in_the_same_order(
    tmp_path: Path, parsed: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = {f"m{i}": f"class C{i}:\n    def f(self, x):\n        self.t[x] = {i}\n" * (i + 1) for i in range(40)}
    sources = files(tmp_path, **texts)
    monkeypatch.setattr(stage, "SMALL_RUN", 1000)
    done: list[int] = []
    many = index(sources, IndexCache(None), 2, LIMIT, done.append)
    assert parsed == []  # all of it was done elsewhere
    assert many == index(sources, IndexCache(None), 1, LIMIT)
    assert sum(done) == len(sources)


def test_a_file_above_the_limit_names_the_option(tmp_path: Path) -> None:
    (found,) = index(files(tmp_path, a="x = 1\n"), IndexCache(None), 1, 3)
    assert isinstance(found, Unreadable)
    assert "6 bytes" in found.reason
    assert "`max-file-size` (3)" in found.reason


def test_a_file_that_vanished_is_a_result(tmp_path: Path) -> None:
    (found,) = index([SourceFile(tmp_path / "gone.py", "gone.py")], IndexCache(None), 1, LIMIT)
    assert isinstance(found, Unreadable)
    assert "cannot be read: No such file" in found.reason


def test_the_cache_keeps_itself_out_of_git_and_backups(tmp_path: Path) -> None:
    run(tmp_path, files(tmp_path, a="x = 1\n"))
    assert (tmp_path / "cache" / ".gitignore").read_text() == "*\n"
    assert (tmp_path / "cache" / "CACHEDIR.TAG").read_text().startswith("Signature: 8a477f597d28d172789f06886806bc55")


def test_only_a_cache_is_removed(tmp_path: Path) -> None:
    run(tmp_path, files(tmp_path, a="x = 1\n"))
    assert clean(tmp_path / "cache")
    assert not (tmp_path / "cache").exists()
    (tmp_path / "precious").mkdir()
    assert not clean(tmp_path / "precious")
    assert (tmp_path / "precious").is_dir()
    assert not clean(tmp_path / "missing")
