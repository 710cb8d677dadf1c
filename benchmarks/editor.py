"""Times the language server on a released package: from opening a file, and from an edit, to its diagnostics.

usage: python -m benchmarks.editor [PACKAGE==VERSION] [--part FOLDER] [--file FILE] [--edits N]

The package is fetched once, and a part of it is put into a git repository of its own. A server is started for it, told
to open the file with a cold cache, and ended; another one finds the cache warm, and is told of edits: a comment, a
function that waits, a line that cannot be parsed. What is told of the second one is held against what `nosync-lint
check` says of that text. Seconds are of the wall, from what the editor sends to the diagnostics, the pause included;
seconds of processors are those of the processes that the server has when it is done.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.releases import fetch

COMMENT = "\n# edited {}\n"
WAITING = "\n\ndef edited(counts: torch.Tensor):  # nosync-lint: hot\n    return counts.tolist()  # {}\n"
BROKEN = "\ndef edited({}:\n"
Json = dict[str, Any]


class Editor:
    """A client of a server of its own, with one document."""

    def __init__(self, folder: Path, path: Path) -> None:
        self._server = subprocess.Popen(
            [sys.executable, "-m", "nosync_lint", "server"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=folder,
        )  # fmt: skip
        self._uri, self._version = path.as_uri(), 0
        self._send("initialize", {"processId": None, "rootUri": folder.as_uri(), "capabilities": {}}, 1)
        self._send("initialized", {})

    def tell(self, text: str) -> None:
        """The document has another text, or is opened with it."""
        self._version += 1
        document: Json = {"uri": self._uri, "version": self._version}
        if self._version == 1:
            self._send("textDocument/didOpen", {"textDocument": {**document, "languageId": "python", "text": text}})
        else:
            self._send("textDocument/didChange", {"textDocument": document, "contentChanges": [{"text": text}]})

    def diagnostics(self) -> list[Json]:
        """The diagnostics of the text that was told last."""
        while True:
            message = self._receive()
            params = message.get("params") or {}
            if message.get("method") == "textDocument/publishDiagnostics" and params.get("version") == self._version:
                found: list[Json] = params["diagnostics"]
                return found

    def work(self) -> float:
        """Seconds that processors have worked for the processes that the server has now, and those they waited for."""
        ticks = 0
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = stat.read_text().rpartition(")")[2].split()
            except OSError:
                continue  # it has just ended
            if fields[1] == str(self._server.pid):
                ticks += sum(map(int, fields[11:15]))
        return ticks / os.sysconf("SC_CLK_TCK")

    def end(self) -> None:
        self._send("shutdown", None, 2)
        while self._receive().get("id") != 2:
            pass
        self._send("exit", None)
        self._server.communicate()

    def _send(self, method: str, params: Any, number: int | None = None) -> None:
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        payload = json.dumps(message if number is None else {**message, "id": number}).encode()
        assert self._server.stdin is not None
        self._server.stdin.write(b"Content-Length: %d\r\n\r\n" % len(payload) + payload)
        self._server.stdin.flush()

    def _receive(self) -> Json:
        pipe, length = self._server.stdout, 0
        assert pipe is not None
        while line := pipe.readline().strip():
            if line.startswith(b"Content-Length:"):
                length = int(line.removeprefix(b"Content-Length:"))
        message: Json = json.loads(pipe.read(length))
        return message


def checked(folder: Path, file: str) -> list[tuple[str, int]]:
    """What the command line says of a file: codes with rows from 0."""
    command = [sys.executable, "-m", "nosync_lint", "check", file, "--output-format", "json", "--exit-zero"]
    done = subprocess.run(command, cwd=folder, capture_output=True, check=True)
    return sorted((one["code"], one["location"]["row"] - 1) for one in json.loads(done.stdout)["findings"])


def told(diagnostics: Sequence[Json]) -> list[tuple[str, int]]:
    return sorted((one["code"], one["range"]["start"]["line"]) for one in diagnostics)


def timed(editor: Editor, name: str, text: str) -> list[Json]:
    start = time.perf_counter()
    editor.tell(text)
    found = editor.diagnostics()
    wall = time.perf_counter() - start
    print(f"| {name} | {len(found)} | {wall:.1f} | {editor.work():.1f} |", flush=True)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("release", nargs="?", default="sglang==0.5.23")
    parser.add_argument("--part", default="sglang/srt", help="the folder of it that is the project")
    parser.add_argument("--file", default="sglang/srt/mem_cache/common.py", help="the document")
    parser.add_argument("--edits", type=int, default=2, help="how many edits of each kind")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = (Path(scratch) / "project").resolve()
        shutil.copytree(fetch(options.release) / options.part, folder / options.part)
        subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
        subprocess.run(["git", "add", "-A"], cwd=folder, check=True)
        path = folder / options.file
        text = path.read_text(encoding="utf-8")
        print("| | diagnostics | seconds | seconds of processors |\n|---|---|---|---|")
        for cache in ("cold", "warm"):
            editor = Editor(folder, path)
            timed(editor, f"opened, {cache} cache", text)
            if cache == "cold":
                editor.end()
        for number in range(options.edits):
            timed(editor, "a comment", text + COMMENT.format(number))
            changed = text + WAITING.format(number)
            found = timed(editor, "a function that waits", changed)
            timed(editor, "a line that cannot be parsed", changed + BROKEN.format(number))
        start = time.perf_counter()
        for number in range(3):  # each but the last is ended by the next
            editor.tell(text + COMMENT.format(f"again {number}"))
            time.sleep(1)
        editor.diagnostics()
        print(f"| three edits, a second apart | | {time.perf_counter() - start:.1f} | {editor.work():.1f} |")
        editor.end()
        path.write_text(changed, encoding="utf-8")
        same = told(found) == checked(folder, options.file)
        print(f"\nThe command line says {'the same' if same else 'something else'}.")
    return 0 if same else 1


if __name__ == "__main__":
    raise SystemExit(main())
