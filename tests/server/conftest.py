"""A language client that talks to a real server in a process of its own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

TIMEOUT = 180
"""Seconds after which a test gives up on an answer: it never passes or fails by time otherwise."""
Json = dict[str, Any]

CAPABILITIES: Json = {
    "general": {"positionEncodings": ["utf-16"]},
    "textDocument": {"publishDiagnostics": {"relatedInformation": True, "versionSupport": True}},
    "workspace": {"workspaceEdit": {"documentChanges": True}, "didChangeWatchedFiles": {"dynamicRegistration": True}},
}


class Client:
    """Sends requests and notifications, keeps what the server sends, and holds open documents as an editor does."""

    def __init__(
        self, folders: list[Path], capabilities: Json | None = None, cwd: Path | None = None, path: Path | None = None
    ) -> None:
        environment = dict(os.environ) | ({"PYTHONPATH": str(path)} if path is not None else {})
        self.process = subprocess.Popen(
            [sys.executable, "-m", "nosync_lint", "server"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=cwd, env=environment,
        )  # fmt: skip
        self.texts: dict[str, str] = {}
        self.versions: dict[str, int] = {}
        self.received: list[Json] = []
        self._arrived = threading.Condition()
        self._ended = False
        self._number = 0
        threading.Thread(target=self._listen, daemon=True).start()
        listed = [{"uri": folder.as_uri(), "name": folder.name} for folder in folders]
        self.server: Json = self.request(
            "initialize",
            {
                "processId": None,
                "rootUri": folders[0].as_uri() if folders else None,
                "workspaceFolders": listed or None,
                "capabilities": CAPABILITIES if capabilities is None else capabilities,
            },
        )
        self.notify("initialized", {})

    # -- messages --

    def request(self, method: str, params: Any) -> Any:
        """The result of a request; an error of the server fails the test."""
        answer = self.answer(self.ask(method, params))
        assert "error" not in answer, answer["error"]
        return answer["result"]

    def ask(self, method: str, params: Any) -> int:
        """Send a request without waiting for its answer."""
        self._number += 1
        self._send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        return self._number

    def answer(self, number: int) -> Json:
        return self.wait_for(lambda message: message.get("id") == number and "method" not in message)

    def notify(self, method: str, params: Any) -> None:
        self._send({"jsonrpc": "2.0", "method": method, "params": params})

    def wait_for(self, wanted: Callable[[Json], bool], after: int = 0) -> Json:
        """The first message behind the first `after` that is wanted."""

        def look() -> Json | None:
            return next((one for one in self.received[after:] if wanted(one)), None)

        with self._arrived:
            self._arrived.wait_for(lambda: look() is not None or self._ended, TIMEOUT)
            found = look()
        assert found is not None, f"the server sent no such message; it sent {self.received}"
        return found

    def shown(self) -> list[str]:
        """The messages that the user has seen."""
        return [one["params"]["message"] for one in self.received if one.get("method") == "window/showMessage"]

    def _send(self, message: Json) -> None:
        payload = json.dumps(message).encode()
        assert self.process.stdin is not None
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(payload) + payload)
        self.process.stdin.flush()

    def _listen(self) -> None:
        pipe = self.process.stdout
        assert pipe is not None
        while line := pipe.readline():
            length = int(line.removeprefix(b"Content-Length:"))
            while pipe.readline().strip():
                pass
            message = json.loads(pipe.read(length))
            with self._arrived:
                self.received.append(message)
                self._arrived.notify_all()
            if "method" in message and "id" in message:  # the server asks: for watched files
                self._send({"jsonrpc": "2.0", "id": message["id"], "result": None})
        with self._arrived:
            self._ended = True
            self._arrived.notify_all()

    # -- documents --

    def open(self, uri: str, text: str, language: str = "python") -> list[Json]:
        """Open a document, and its diagnostics."""
        after = len(self.received)
        self.open_quietly(uri, text, language)
        return self.diagnostics(uri, after)

    def open_quietly(self, uri: str, text: str, language: str = "python") -> None:
        """Open a document that no diagnostics come for."""
        self.texts[uri], self.versions[uri] = text, 1
        document = {"uri": uri, "languageId": language, "version": 1, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": document})

    def change(self, uri: str, text: str) -> int:
        """Change a document to another text, and how many messages had been received before."""
        after = len(self.received)
        self.texts[uri] = text
        self.versions[uri] += 1
        identifier = {"uri": uri, "version": self.versions[uri]}
        self.notify("textDocument/didChange", {"textDocument": identifier, "contentChanges": [{"text": text}]})
        return after

    def close(self, uri: str) -> None:
        del self.texts[uri]
        self.notify("textDocument/didClose", {"textDocument": {"uri": uri}})

    def diagnostics(self, uri: str, after: int = 0) -> list[Json]:
        """The diagnostics of the version of a document that is open."""

        def wanted(message: Json) -> bool:
            params = message.get("params") or {}
            published = message.get("method") == "textDocument/publishDiagnostics"
            return published and params["uri"] == uri and params.get("version") == self.versions[uri]

        found: list[Json] = self.wait_for(wanted, after)["params"]["diagnostics"]
        return found

    def actions(self, uri: str, place: Json, only: list[str] | None = None) -> list[Json]:
        context: Json = {"diagnostics": []} | ({"only": only} if only else {})
        asked = {"textDocument": {"uri": uri}, "range": place, "context": context}
        found: list[Json] = self.request("textDocument/codeAction", asked)
        return found

    def apply(self, action: Json) -> int:
        """Apply an action to the open documents, as an editor does that counts columns in UTF-16."""
        (change,) = action["edit"]["documentChanges"]
        uri = change["textDocument"]["uri"]
        assert change["textDocument"]["version"] == self.versions[uri]
        text = self.texts[uri]
        for edit in sorted(change["edits"], key=lambda one: _key(one["range"]["start"]), reverse=True):
            start, end = (offset(text, edit["range"][side]) for side in ("start", "end"))
            text = text[:start] + edit["newText"] + text[end:]
        return self.change(uri, text)

    def hover(self, uri: str, line: int, character: int) -> str:
        """The text that is shown over a place; empty where there is none."""
        place = {"line": line, "character": character}
        found = self.request("textDocument/hover", {"textDocument": {"uri": uri}, "position": place})
        return "" if found is None else str(found["contents"]["value"])

    def end(self) -> int:
        self.request("shutdown", None)
        self.notify("exit", None)
        return self.process.wait(TIMEOUT)


def _key(position: Json) -> tuple[int, int]:
    return position["line"], position["character"]


def offset(text: str, position: Json) -> int:
    """The index of a place whose column counts UTF-16 units."""
    starts = [0, *(end.end() for end in re.finditer("\r\n|\r|\n", text))]
    before = text[: starts[position["line"]]] if position["line"] < len(starts) else text
    line = re.split("\r|\n", text[len(before) :])[0]
    units = 0
    for points, character in enumerate(line):
        if units >= position["character"]:
            return len(before) + points
        units += len(character.encode("utf-16-le")) // 2
    return len(before) + len(line)


Connect = Callable[..., Client]


@pytest.fixture
def connect() -> Iterator[Connect]:
    """Starts servers for folders, and ends them."""
    clients: list[Client] = []

    def start(*folders: Path, **options: Any) -> Client:
        clients.append(Client(list(folders), **options))
        return clients[-1]

    yield start
    for client in clients:
        client.process.kill()
        client.process.wait(TIMEOUT)
        assert client.process.stdin is not None
        assert client.process.stdout is not None
        client.process.stdin.close()
        client.process.stdout.close()
