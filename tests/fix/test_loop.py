"""Rounds of fixes: what overlaps waits for the next round, what does harm is taken back, and it comes to an end."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from nosync_lint.finding import Finding, Fix, Hop
from nosync_lint.fix import loop
from nosync_lint.fix.apply import compatible
from nosync_lint.fix.loop import Sources, improve
from nosync_lint.report import Report
from tests.fix.findings import finding_with, replacing


def parses(data: bytes) -> bool:
    try:
        ast.parse(data)
    except SyntaxError:
        return False
    return True


class Program:
    """Files, and the findings that `look` sees in the text of each."""

    def __init__(self, look: Callable[[str], list[Finding]], **files: str) -> None:
        self.files = {f"{name}.py": text.encode() for name, text in files.items()}
        self.look = look
        self.asked = 0

    def ask(self, contents: Mapping[str, bytes]) -> Report:
        self.asked += 1
        now = {**self.files, **contents}
        found = tuple(_of(name, finding) for name in sorted(now) for finding in self.look(now[name].decode()))
        return Report(found, fixable=lambda finding: finding.fix is not None)

    @property
    def sources(self) -> Sources:
        return Sources(self.files.get, parses)


def _of(name: str, finding: Finding) -> Finding:
    """What is found in a file is in that file, unless it says that it is in another one."""
    if finding.filename != "a.py":
        return finding
    return replace(finding, filename=name, fingerprint=f"{name}:{finding.fingerprint}")


def words(text: str, word: str, content: str) -> list[Finding]:
    """A finding for every place of a word, with a fix that replaces it."""
    found, start = list[Fix](), text.find(word)
    while start >= 0:
        found.append(replacing(start + 1, start + 1 + len(word), content))
        start = text.find(word, start + 1)
    return [finding_with(fix, fingerprint=f"{word}{number}") for number, fix in enumerate(found)]


def test_all_fixes_that_do_not_overlap_are_made_at_once() -> None:
    program = Program(lambda text: words(text, "bad", "good"), a="bad + bad")
    draft = improve(program.ask({}), program.ask, program.sources)
    assert draft.contents == {"a.py": b"good + good"}
    assert len(draft.fixed) == 2
    assert program.asked == 2
    assert (draft.failures, draft.notes, draft.report.findings) == ([], [], ())


def test_of_two_that_overlap_the_second_waits() -> None:
    one, other = finding_with(replacing(1, 5, "")), finding_with(replacing(4, 9, ""))
    assert compatible([one, other]) == [one]
    touching = finding_with(replacing(5, 9, ""))
    assert compatible([one, touching]) == [one, touching]
    same = finding_with(replacing(3, 3, "a"), fingerprint="same")
    assert compatible([same, same]) == [same]
    program = Program(lambda text: words(text, "f(", "g(") + words(text, "(f", "(g"), a="f(f(1))")
    draft = improve(program.ask({}), program.ask, program.sources)
    assert draft.contents == {"a.py": b"g(g(1))"}


def test_a_fix_that_makes_another_one_possible_is_followed_by_it() -> None:
    def look(text: str) -> list[Finding]:
        later = words(text, "later", "done")
        return words(text, "first", "done") + ([finding_with(None)] if later and "first" in text else later)

    program = Program(look, a="first + later")
    draft = improve(program.ask({}), program.ask, program.sources)
    assert draft.contents == {"a.py": b"done + done"}
    assert program.asked == 3


def test_what_would_not_parse_is_not_made_and_the_rest_is() -> None:
    program = Program(lambda text: words(text, "bad", "good") + words(text, "x", "("), a="bad + x")
    draft = improve(program.ask({}), program.ask, program.sources)
    assert draft.contents == {"a.py": b"good + x"}
    assert draft.failures == ["a.py:1:1: NSL101: not fixed: the rewritten file would not parse"]


def test_a_fix_that_leaves_as_many_findings_is_taken_back() -> None:
    program = Program(lambda text: words(text, "bad", "bad "), a="bad", b="fine")
    draft = improve(program.ask({}), program.ask, program.sources)
    assert draft.contents == {}
    assert draft.fixed == []
    assert draft.notes == ["a.py:1:1: NSL101: not fixed: with it, there would be more of NSL101 in a.py"]
    assert len(draft.report.findings) == 1


def test_a_fix_that_makes_a_new_finding_elsewhere_is_taken_back() -> None:
    def look(text: str) -> list[Finding]:
        return words(text, "bad", "worse") + [finding_with(None, "b.py", fingerprint="new")] * text.count("worse")

    program = Program(look, a="bad")
    draft = improve(program.ask({}), program.ask, program.sources)
    assert draft.contents == {}
    assert len(draft.notes) == 1


def worse(text: str, *evidence: Hop) -> list[Finding]:
    """A finding in another file for every `worse`, which a fix makes of `odd`."""
    new = replace(finding_with(None, "elsewhere.py", fingerprint="new"), evidence=evidence)
    return words(text, "bad", "good") + words(text, "odd", "worse") + [new] * text.count("worse")


def test_of_many_fixes_only_that_is_taken_back_with_which_there_is_a_new_finding_elsewhere() -> None:
    program = Program(worse, **{f"file{number}": "bad" for number in range(40)}, middle="odd + bad")
    draft = improve(program.ask({}), program.ask, program.sources)
    assert draft.contents == {**{f"file{number}.py": b"good" for number in range(40)}, "middle.py": b"odd + good"}
    assert len(draft.notes) == 1
    assert program.asked < 20


def test_what_a_new_finding_tells_of_is_taken_back_first() -> None:
    program = Program(lambda text: worse(text, Hop("b.py", 1, "made here")), a="bad", b="odd")
    draft = improve(program.ask({}), program.ask, program.sources)
    assert draft.contents == {"a.py": b"good"}
    assert program.asked == 3


def test_what_does_not_come_to_rest_is_stopped_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "MAX_ROUNDS", 1)
    program = Program(lambda text: words(text, "f(", "g(") + words(text, "(f", "(g"), a="f(f(1))")
    draft = improve(program.ask({}), program.ask, program.sources)
    assert draft.notes == ["there was still something to fix after 1 rounds; run again"]


def test_a_file_that_changed_since_it_was_judged_is_left_alone() -> None:
    program = Program(lambda text: words(text, "bad", "good"), a="bad")
    draft = improve(program.ask({}), program.ask, Sources(lambda name: None, parses))
    assert draft.contents == {}
    assert draft.failures == ["a.py:1:1: NSL101: not fixed: the file has changed since it was read; run again"]
