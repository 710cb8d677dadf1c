"""Checks the open documents of a project when one of them changes, and keeps what was found."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

from nosync_lint.answers import Explanation
from nosync_lint.server.documents import Document
from nosync_lint.server.messages import Check, Checked, Explain, Trouble
from nosync_lint.server.workers import Worker

PAUSE = 0.3
"""Seconds without a change after which a check begins."""

Tell = Callable[[Checked | Trouble, Sequence[Document]], None]


class Project:
    """The open documents of one folder. One check runs at a time; a newer one ends it."""

    def __init__(self, folder: Path, cached: bool, tell: Tell) -> None:
        self._folder, self._cached, self._tell = folder, cached, tell
        self.documents: dict[str, Document] = {}
        self._task: asyncio.Task[None] | None = None
        self._worker: Worker | None = None

    def check(self, pause: float = 0) -> None:
        """Check the documents after a pause, instead of what is being checked."""
        self.stop()
        if any(not document.home.is_skipped for document in self.documents.values()):
            self._task = asyncio.ensure_future(self._check(pause))

    def stop(self) -> None:
        """End what is being done; nothing more can be explained."""
        if self._task is not None:
            self._task.cancel()
        if self._worker is not None:
            self._worker.kill()
        self._task = self._worker = None

    async def close(self) -> None:
        """Stop, and wait until the worker is gone."""
        worker = self._worker
        self.stop()
        if worker is not None:
            await worker.ended()

    async def _check(self, pause: float) -> None:
        await asyncio.sleep(pause)
        checked = [one for one in self.documents.values() if not one.home.is_skipped]
        versions = [document.version for document in checked]
        try:
            self._worker = await Worker.start(self._folder)
        except OSError as error:  # the folder is gone, or no process can be had
            self._tell(Trouble(f"{self._folder}: cannot be checked: {error.strerror or error}"), checked)
            return
        answer = await self._worker.ask(Check({one.home.path: one.content for one in checked}, self._cached))
        while True:
            self._tell(answer, _take(answer, checked, versions) if isinstance(answer, Checked) else checked)
            if not isinstance(answer, Checked) or answer.complete:
                return
            answer = await self._worker.more()

    async def explain(self, document: Document, row: int) -> Explanation | None:
        """What is known of a row of a document, once the check under way is over; None where a change came between."""
        while self._task is not None and not self._task.done():
            await asyncio.wait([self._task])
        if self._worker is None or not document.is_current:
            return None
        answer = await self._worker.ask(Explain(document.home.path, row))
        return answer if isinstance(answer, Explanation) else None


def _take(answer: Checked, documents: Sequence[Document], versions: Sequence[int | None]) -> list[Document]:
    """Keep what a check of these versions of documents found. Returns the documents that it tells of."""
    told = [pair for pair in zip(documents, versions, strict=True) if str(pair[0].home.path) in answer.files]
    for document, version in told:
        path = str(document.home.path)
        document.checked = version
        document.found = tuple(one for one in answer.findings if one.filename == path)
        document.fixable = answer.fixable.intersection(document.found)
        document.places = answer.places.get(path, {})
    return [document for document, _ in told]
