"""A process that checks the open documents of one project, and then explains lines of them until its input ends.

It is started for one check and killed when a document changes: whatever it is doing ends at once, and the memory of a
linked program is given back. Its working directory is the folder of the project.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import BinaryIO

from nosync_lint.config import ConfigError, Settings, find_config, load_config
from nosync_lint.discover import MissingPath
from nosync_lint.finding import Finding, Hop
from nosync_lint.index import index
from nosync_lint.index.cache import IndexCache
from nosync_lint.index.cuda import cuda_comment_places
from nosync_lint.index.pragmas import comment_places
from nosync_lint.index.records import Unreadable
from nosync_lint.pipeline import (
    Linked,
    Unanswerable,
    ask,
    cache_folder,
    explanation_of,
    found_files,
    link,
    report_of,
)
from nosync_lint.ratchet import before
from nosync_lint.registry import RulesMissing
from nosync_lint.report import Report
from nosync_lint.server.messages import Answer, Check, Checked, Explain, Request, Trouble, pack, receive
from nosync_lint.source import decode

Say = Callable[[Answer], None]


def main() -> None:
    """Answer the requests on standard input, the first of which is a check."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what a rule prints must not stand among the answers
    asked = os.fdopen(os.dup(sys.stdin.fileno()), "rb")
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), sys.stdin.fileno())
    requests: SimpleQueue[Request] = SimpleQueue()
    # Not on `sys.stdin`: processes that are forked while a thread reads it wait forever for its lock, to close it.
    Thread(target=_listen, args=(asked, requests), daemon=True).start()

    def say(answer: Answer) -> None:
        answers.write(pack(answer))
        answers.flush()

    check = requests.get()
    assert isinstance(check, Check)
    try:
        _check(check, requests, say)
    except (ConfigError, MissingPath, RulesMissing) as error:
        say(Trouble(str(error)))
    except OSError as error:
        say(Trouble(f"{error.filename or 'the project'}: {error.strerror or error}"))
    except Exception as error:
        say(Trouble(f"internal failure: {type(error).__name__}: {error}; report it"))
        raise


def _listen(pipe: BinaryIO, requests: SimpleQueue[Request]) -> None:
    """Hand requests on as they come. When the server is gone, so are we, whatever is being done."""
    while (message := receive(pipe)) is not None:
        requests.put(message)
    os._exit(0)


def _check(check: Check, requests: SimpleQueue[Request], say: Say) -> None:
    start = time.perf_counter()
    config = find_config(Path.cwd())
    settings = load_config(config) if config is not None else Settings()
    paths = frozenset(map(str, check.documents))
    was = before(settings, sorted(paths), "", "")
    broken, is_all = _broken(check, settings)
    told = frozenset(str(file.path) for file in broken.found.files)

    def tell(linked: Linked, files: frozenset[str], complete: bool) -> None:
        say(_checked(linked, report_of(linked, settings, None, was, start), files, complete))

    def serve(linked: Linked) -> None:
        tell(linked, paths if is_all else paths - told, complete=True)
        while True:
            request = requests.get()
            assert isinstance(request, Explain)
            say(_explained(linked, settings, request))

    if is_all:
        serve(broken)
    if told:
        tell(broken, told, complete=False)
    ask(serve, sorted(paths), settings, cache=check.cached, overlay=check.documents)


def _broken(check: Check, settings: Settings) -> tuple[Linked, bool]:
    """The documents that cannot be read, such as one in which somebody types, and whether no other one is linted. All
    that is said of them is why: the project need not be linked for it."""
    found = found_files([str(path) for path in check.documents], settings, check.documents)
    files = [file for file in found.files if file.path in check.documents]
    cache = IndexCache(cache_folder(settings) if check.cached else None)
    indexed = index(files, cache, 1, settings.max_file_size)
    bad = [(file, one) for file, one in zip(files, indexed, strict=True) if isinstance(one, Unreadable)]
    found = replace(found, files=tuple(file for file, _ in bad))
    reasons = [one for _, one in bad]
    program = link(found.files, reasons, settings, (), found.root)
    return Linked(found, reasons, (), program), len(bad) == len(files)


def _checked(linked: Linked, report: Report, files: frozenset[str], complete: bool) -> Checked:
    findings = tuple(_absolute(finding) for finding in report.findings)
    fixable = frozenset(one for one, told in zip(findings, report.findings, strict=True) if report.fixable(told))
    flagged = {finding.filename for finding in findings}
    places = {
        str(file.path): _places(decode(file.content, file.is_python), file.is_python)
        for file, facts in zip(linked.found.files, linked.indexed, strict=True)
        if file.content is not None and str(file.path) in flagged and not isinstance(facts, Unreadable)
    }
    notes = report.notes if linked.targets else ()  # those of a part of the project would be wrong
    return Checked(files, complete, findings, fixable, places, report.failures, notes)


def _places(text: str, is_python: bool) -> Mapping[int, int]:
    return comment_places(text) if is_python else {row: row for row in cuda_comment_places(text)}


def _explained(linked: Linked, settings: Settings, request: Explain) -> Answer:
    try:
        return explanation_of(linked, settings, str(request.path), request.row)
    except Unanswerable as error:
        return Trouble(str(error))


def _absolute(finding: Finding) -> Finding:
    return replace(
        finding,
        filename=_path(finding.filename),
        flow=_hops(finding.flow),
        evidence=_hops(finding.evidence),
        related=_hops(finding.related),
    )


def _hops(hops: tuple[Hop, ...]) -> tuple[Hop, ...]:
    return tuple(replace(hop, filename=_path(hop.filename)) for hop in hops)


def _path(name: str) -> str:
    return os.path.abspath(name)


if __name__ == "__main__":
    main()
