"""Reads source files into facts that hold no syntax tree: in worker processes, through a cache keyed by content."""

from __future__ import annotations

import ctypes
import gc
import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from hashlib import blake2b

from nosync_lint.index.cache import IndexCache, freeze, thaw
from nosync_lint.index.cells import NotebookCode, notebook_code
from nosync_lint.index.cuda import index_cuda
from nosync_lint.index.cuda_records import CudaIndex
from nosync_lint.index.python import index_python
from nosync_lint.index.records import ModuleIndex, Unreadable
from nosync_lint.source import SourceFile, UnreadableFile, decode, read_source

Indexed = ModuleIndex | CudaIndex | Unreadable
SMALL_RUN = 400_000
"""Bytes of source below which starting worker processes costs more than it saves."""


def index(
    files: Sequence[SourceFile],
    cache: IndexCache,
    jobs: int,
    max_size: int,
    progress: Callable[[int], None] | None = None,
) -> list[Indexed]:
    """The facts of each file, in the order given. Whatever is wrong with a file is its result."""
    results: list[Indexed | None] = [None] * len(files)
    missing: list[tuple[int, bytes, bytes]] = []  # position, key, content
    notebooks: dict[int, NotebookCode] = {}
    for position, file in enumerate(files):
        try:
            data = read_source(file.path, max_size, file.content)
            if file.is_notebook:
                notebooks[position] = notebook_code(data)
                data = notebooks[position].data
        except UnreadableFile as error:
            results[position] = Unreadable(error.reason, error.row)
            continue
        key = content_key(data, file.is_python)
        known = cache.get(key)
        if known is not None:
            results[position] = known
        else:
            missing.append((position, key, data))
        if progress is not None and known is not None:
            progress(1)
    for position, key, payload in _parse_all(missing, files, jobs):
        results[position] = thaw(payload)
        cache.put(key, payload)
        if progress is not None:
            progress(1)
    cache.commit()
    for position, code in notebooks.items():
        result = results[position]
        if isinstance(result, ModuleIndex):
            results[position] = result._replace(cells=code.starts, unread=code.unread)
    return [result for result in results if result is not None]


def content_key(data: bytes, is_python: bool) -> bytes:
    """The cache key of a file: its content, its language, and the Python that parses it."""
    language = f"py{sys.version_info[0]}.{sys.version_info[1]}" if is_python else "cuda"
    return blake2b(data, digest_size=16, person=language.encode()[:16]).digest()


def index_one(data: bytes, is_python: bool) -> Indexed:
    """The facts of one file's content."""
    try:
        text = decode(data, is_python)
        return index_python(text) if is_python else index_cuda(text)
    except UnreadableFile as error:
        return Unreadable(error.reason, error.row)


def _parse_all(
    missing: Sequence[tuple[int, bytes, bytes]], files: Sequence[SourceFile], jobs: int
) -> Iterable[tuple[int, bytes, bytes]]:
    total = sum(len(data) for _, _, data in missing)
    if jobs < 2 or total < SMALL_RUN:
        for position, key, data in missing:
            yield position, key, freeze(index_one(data, files[position].is_python))
        return
    method = "fork" if sys.platform == "linux" else "spawn"
    chunks = _chunks(missing, files, total // (jobs * 16) + 1)
    context = multiprocessing.get_context(method)
    with ProcessPoolExecutor(jobs, mp_context=context, initializer=die_with_parent) as pool:
        for chunk, payloads in zip(
            chunks, pool.map(_work, [[task[2:] for task in chunk] for chunk in chunks]), strict=True
        ):
            for (position, key, _, _), payload in zip(chunk, payloads, strict=True):
                yield position, key, payload


def _chunks(
    missing: Sequence[tuple[int, bytes, bytes]], files: Sequence[SourceFile], size: int
) -> list[list[tuple[int, bytes, bytes, bool]]]:
    chunks: list[list[tuple[int, bytes, bytes, bool]]] = [[]]
    filled = 0
    for position, key, data in missing:
        if filled > size:
            chunks.append([])
            filled = 0
        chunks[-1].append((position, key, data, files[position].is_python))
        filled += len(data)
    return chunks


def die_with_parent() -> None:
    """A worker ends when the run is killed, and leaves interrupts to it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def _work(tasks: Sequence[tuple[bytes, bool]]) -> list[bytes]:
    gc.disable()  # everything made here is kept until it is sent
    return [freeze(index_one(data, is_python)) for data, is_python in tasks]


def default_jobs() -> int:
    """The processors this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
