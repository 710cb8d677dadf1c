"""Starts and ends workers, and talks to them without ever blocking the event loop."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from nosync_lint.server.messages import HEAD, Explain, Request, Trouble, length, pack, unpack


class Worker:
    """A worker process. What it is asked is answered in order; a killed one answers nothing more."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._turn = asyncio.Lock()

    @classmethod
    async def start(cls, folder: Path) -> Worker:
        """A worker for the project in a folder, in which it runs: never with the folder on its import path."""
        group: dict[str, Any] = {} if os.name == "nt" else {"start_new_session": True}
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-P", "-m", "nosync_lint.server.worker",
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=folder, **group,
        )  # fmt: skip
        return cls(process)

    async def ask(self, request: Request) -> Any:
        """The answer to a request. A worker that ends without one is trouble. When the wait for a check is cancelled,
        the worker is of no more use; the answer to a question about a line is dropped."""
        answer = asyncio.ensure_future(self._asked(request))
        if isinstance(request, Explain):
            return await asyncio.shield(answer)
        return await answer

    async def more(self) -> Any:
        """The next answer to a check that is not complete."""
        async with self._turn:
            return await self._answer()

    async def _asked(self, request: Request) -> Any:
        async with self._turn:
            sending = self._process.stdin
            assert sending is not None
            try:
                sending.write(pack(request))
                await sending.drain()
            except ConnectionError:
                pass  # it has ended: so will the wait for its answer
            return await self._answer()

    async def _answer(self) -> Any:
        receiving = self._process.stdout
        assert receiving is not None
        try:
            return unpack(await receiving.readexactly(length(await receiving.readexactly(HEAD))))
        except (asyncio.IncompleteReadError, ConnectionError):
            code = await self._process.wait()
            return Trouble(f"the linter ended with {code} before it answered; its messages are in the server's log")

    async def ended(self) -> None:
        """Wait until the process is gone."""
        await self._process.wait()

    def kill(self) -> None:
        """End the worker with all that it has started."""
        if self._process.returncode is not None:
            return
        try:
            if os.name == "nt":
                self._process.kill()
            else:
                os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass  # it has just ended
