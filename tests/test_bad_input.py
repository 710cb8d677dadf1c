"""Whatever is wrong with the input has one clear result that names it, and the rest of the run is unaffected."""

from __future__ import annotations

import json
import os
import re
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from nosync_lint import cli, pipeline, registry
from nosync_lint.finding import Severity
from nosync_lint.index import index
from nosync_lint.judge import judge
from nosync_lint.link.program import Program
from nosync_lint.rule import Judgement, Rule

TENSORS = 'import torch\n\n\ndef f():\n    t = torch.zeros(4, device="cuda")\n    i = torch.arange(2, device="cuda")\n'
STORE = "    t[i] = -1\n"
GOOD = TENSORS + STORE
FOUND = "good.py:7:5: NSL101"


class Outcome(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def reported(self) -> list[str]:
        """`file:row: code` of each finding."""
        return re.findall(r"^(\S.*?:\d+:\d+: NSL\d+)", self.out, re.M)

    def one_line_error(self, *parts: str) -> None:
        """Ended with 2 and told it in one line with all these words."""
        assert self.code == 2, self.out + self.err
        assert self.err.startswith("nosync-lint: error: ")
        assert self.err.count("\n") == 1
        for part in parts:
            assert part in self.err

    def unreadable(self, name: str, reason: str) -> None:
        """One NSL000 for the file, with a reason and a cure, and the good file beside it is linted."""
        assert self.code == 1, self.out + self.err
        (told,) = [line for line in self.out.splitlines() if ": NSL000 " in line]
        assert told.startswith(f"{name}:")
        assert reason in told
        after = self.out.partition(told)[2].splitlines()
        assert any(re.match(r"    instead: .{8,}", line) for line in after[1:4])
        assert FOUND in self.out
        assert self.err == ""


Check = Callable[..., Outcome]


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with one good file that has one finding; the working directory."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "good.py").write_text(GOOD)
    monkeypatch.chdir(folder)
    for name in ("NOSYNC_LINT_NO_CACHE", "NOSYNC_LINT_CACHE_DIR", "NOSYNC_LINT_OUTPUT_FORMAT", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    return folder


@pytest.fixture
def command(root: Path, capsys: pytest.CaptureFixture[str]) -> Check:
    """Any command in this process. An exception that leaves it is a traceback for the user, and fails the test."""

    def run(*arguments: str) -> Outcome:
        try:
            code = cli.main(arguments)
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
        return Outcome(code, *capsys.readouterr())

    return run


@pytest.fixture
def check(command: Check) -> Check:
    """`check` over the project, whatever the heat, without a cache."""
    return lambda *arguments: command("check", "--heat", "any", "--no-cache", "-j", "1", *(arguments or (".",)))


def spawn(*arguments: str, before: tuple[str, ...] = (), **options: object) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own."""
    words = [sys.executable, *before, "-m", "nosync_lint", *arguments]
    given = {"capture_output": True, "text": True, "timeout": 30, "check": False, **options}
    return subprocess.run(words, **given)  # type: ignore[call-overload,no-any-return]


# Paths


def test_a_missing_path_is_an_error_that_names_it(check: Check) -> None:
    check("good.py", "absent.py").one_line_error("absent.py", "no such file", "give a path that exists")


def test_a_dangling_link_is_an_error_that_names_it(check: Check, root: Path) -> None:
    (root / "link.py").symlink_to("nowhere")
    check("link.py").one_line_error("link.py", "link")


def test_a_circular_link_is_an_error_that_names_it(check: Check, root: Path) -> None:
    (root / "a.py").symlink_to("b.py")
    (root / "b.py").symlink_to("a.py")
    check("a.py").one_line_error("a.py", "circular")


def test_links_inside_a_folder_that_lead_nowhere_or_back_are_passed_over(check: Check, root: Path) -> None:
    (root / "a.py").symlink_to("b.py")
    (root / "b.py").symlink_to("a.py")
    (root / "dangling.py").symlink_to("nowhere")
    (root / "again").symlink_to(".")
    assert check().reported == [FOUND]


def test_a_folder_with_the_name_of_a_file_is_entered(check: Check, root: Path) -> None:
    (root / "x.py").mkdir()
    (root / "x.py" / "y.py").write_text(GOOD)
    assert check().reported == [FOUND, "x.py/y.py:7:5: NSL101"]


def test_special_files_inside_a_folder_are_passed_over(check: Check, root: Path) -> None:
    os.mkfifo(root / "pipe.py")
    with socket.socket(socket.AF_UNIX) as one:
        one.bind("socket.py")
        assert check().reported == [FOUND]


@pytest.mark.parametrize("kind", ["pipe", "socket", "device"])
def test_a_special_file_that_is_given_is_named_and_never_waited_for(root: Path, kind: str) -> None:
    name = "/dev/null" if kind == "device" else f"{kind}.py"
    if kind == "pipe":
        os.mkfifo(root / name)
    with socket.socket(socket.AF_UNIX) as one:
        if kind == "socket":
            one.bind(name)
        done = spawn("check", "--no-cache", "--heat", "any", name, timeout=6)
    assert done.returncode in (1, 2), done.stdout
    assert name.removeprefix("/") in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("text", ["", "\n", "# only a comment", "\ufeff", "\x0c"])
def test_a_file_without_code_is_clean(check: Check, root: Path, text: str) -> None:
    (root / "empty.py").write_text(text, encoding="utf-8")
    outcome = check("empty.py")
    assert (outcome.code, outcome.reported) == (0, [])
    assert "1 file reported" in outcome.out


@pytest.mark.parametrize("case", ["empty folder", "all excluded", "only other files", "ignored by git"])
def test_a_run_over_no_files_says_so(check: Check, root: Path, case: str) -> None:
    folder = root / "folder"
    folder.mkdir()
    arguments = ["folder"]
    if case == "only other files":
        (folder / "README.md").write_text("words\n")
    if case == "all excluded":
        (folder / "a.py").write_text(GOOD)
        arguments += ["--exclude", "folder"]
    if case == "ignored by git":
        (folder / "a.py").write_text(GOOD)
        (root / ".gitignore").write_text("folder\n")
        subprocess.run(["git", "init", "-q", "."], check=True)
    outcome = check(*arguments)
    assert outcome.code == 0
    assert re.search(r"^note: no\b.*\bfiles?\b", outcome.out, re.M), outcome.out


NAMES = [
    "with space.py",
    "br[a]cket*.py",
    "new\nline.py",
    "\x1b[31m.py",
    "a:1:2.py",
    'quote".py',
    "日本.py",
    "-dash.py",
]


@pytest.mark.parametrize("name", [*NAMES, os.fsdecode(b"\xff\xfe.py")], ids=ascii)
def test_any_file_name_is_reported_as_it_is(check: Check, root: Path, name: str) -> None:
    (root / name).write_text(GOOD)
    told = json.loads(check("--output-format", "json").out)
    assert sorted(one["filename"] for one in told["findings"]) == sorted(["good.py", name])
    plain = check(f"./{name}").out
    assert plain.count(": NSL101 ") == 1
    assert "\x1b" not in plain


@pytest.mark.parametrize("denied", ["listing", "looking"])
def test_a_folder_that_may_not_be_entered_is_named(
    check: Check, root: Path, monkeypatch: pytest.MonkeyPatch, denied: str
) -> None:
    (root / "locked").mkdir()
    (root / "locked" / "a.py").write_text(GOOD)
    scandir, stat = os.scandir, Path.stat

    def no_listing(path: str) -> object:
        if "locked" in str(path):
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    def no_looking(self: Path, **options: bool) -> os.stat_result:
        if "locked" in self.parts[:-1]:
            raise PermissionError(13, "Permission denied", str(self))
        return stat(self, **options)

    if denied == "listing":
        monkeypatch.setattr(os, "scandir", no_listing)
    else:
        monkeypatch.setattr(Path, "stat", no_looking)
    outcome = check()
    assert outcome.code in (1, 2)
    assert FOUND in outcome.out
    assert "locked" in outcome.out + outcome.err


# Contents

UNREADABLE = {
    "a NUL byte": (b"x = 1\n\0\n", "NUL"),
    "binary": (bytes(range(256)), "NUL"),
    "Latin-1 without a coding line": (b'x = "\xe9"\n', "utf-8: byte 0xe9"),
    "an unknown coding line": (b"# coding: zork\nx = 1\n", "zork"),
    "a coding line that contradicts the mark": (b"\xef\xbb\xbf# coding: latin-1\nx = 1\n", "encoding"),
    "UTF-16 with a mark": ("x = 1\n".encode("utf-16"), "NUL"),
    "bytes that the coding line does not admit": (b"# coding: ascii\nx = '\xff'\n", "ascii"),
    "a coding line of no text encoding": (b"# coding: rot13\nvzcbeg gbepu\n", "rot13"),
    "a coding line of bytes to bytes": (b"# coding: hex\n78\n", "hex"),
    "a coding line that always fails": (b"# coding: undefined\nx = 1\n", "undefined"),
    "a coding line of host names": (b"# coding: punycode\nx = 1\n", "punycode"),
    "half a pair in UTF-7": (b'# coding: utf-7\nx = "+2AA-"\n', "utf-7"),
    "half a pair by escape": (b'# coding: raw_unicode_escape\nx = "\\ud800"\n', "raw"),
    "a NUL in UTF-7": (b'# coding: utf-7\nx = "+AAA-"\n', "null"),
    "Python 2": (b'print "a"\n', "cannot be parsed as Python 3"),
    "a syntax error": (b"def f(:\n", "cannot be parsed as Python 3"),
    "mixed indentation": (b"if 1:\n\tx = 1\n        y = 2\n", "inconsistent use of tabs"),
    "a number too long to convert": (b"x = " + b"9" * 6000 + b"\n", "4300"),
    "5,000 parentheses": (b"x = " + b"(" * 5000 + b"1" + b")" * 5000 + b"\n", "nested"),
    "5,000 nested lists": (b"x = " + b"[" * 5000 + b"]" * 5000 + b"\n", "nested"),
    "5,000 powers": (b"x = 1" + b" ** 1" * 5000 + b"\n", "nested too deeply"),
    "5,000 lambdas": (b"x = " + b"lambda: " * 5000 + b"1\n", "nested too deeply"),
    "120 nested blocks": (b"".join(b" " * n + b"if a:\n" for n in range(120)) + b" " * 120 + b"x\n", "indentation"),
}


@pytest.mark.parametrize("case", UNREADABLE)
def test_a_file_that_cannot_be_read_is_a_finding_and_the_others_are_linted(check: Check, root: Path, case: str) -> None:
    content, reason = UNREADABLE[case]
    (root / "bad.py").write_bytes(content)
    check().unreadable("bad.py", reason)


def test_a_file_over_the_limit_is_a_finding_that_names_the_option(check: Check, root: Path) -> None:
    (root / "nosync-lint.toml").write_text(f"max-file-size = {len(GOOD)}\n")
    (root / "bad.py").write_text(GOOD + "#\n")
    check().unreadable("bad.py", "`max-file-size`")


@pytest.mark.parametrize("arguments", [("--select", "NSL101"), ("--ignore", "NSL001")])
def test_selecting_rules_does_not_hide_that_a_file_was_not_read(
    check: Check, root: Path, arguments: tuple[str, ...]
) -> None:
    (root / "bad.py").write_text("def (\n")
    outcome = check(*arguments, ".")
    assert "bad.py" in outcome.out
    assert outcome.code == 1


READABLE = {
    "a mark of UTF-8": (b"\xef\xbb\xbf" + GOOD.encode(), 7),
    "Windows line ends": (GOOD.replace("\n", "\r\n").encode(), 7),
    "old Macintosh line ends": (GOOD.replace("\n", "\r").encode(), 7),
    "no last line end": (GOOD.rstrip().encode(), 7),
    "form feeds": (b"\x0c" + GOOD.replace("\n\n\n", "\n\x0c\n\x0c\n").encode(), 7),
    "line separators inside a string": (GOOD.replace("torch\n\n", 'torch\nX = "\u2028\x85"\n').encode(), 7),
    "half a pair in a string": (GOOD.replace("t[i]", '{"\\ud800": t}["\\ud800"][i]').encode(), 7),
    "Latin-1 with a coding line": (b"# coding: latin-1\n# \xe9\n" + GOOD.encode(), 9),
    "GBK with a coding line": ("# coding: gbk\n# 中文\n".encode("gbk") + GOOD.encode(), 9),
    "tabs": (GOOD.replace("    ", "\t").encode(), 7),
}


@pytest.mark.parametrize("case", READABLE)
def test_an_unusual_file_is_linted_like_any_other(check: Check, root: Path, case: str) -> None:
    content, row = READABLE[case]
    (root / "good.py").unlink()
    (root / "odd.py").write_bytes(content)
    outcome = check()
    assert [one for one in outcome.reported if one.startswith(f"odd.py:{row}:")] == outcome.reported
    assert len(outcome.reported) == 1


@pytest.mark.parametrize(
    ("encoding", "word"), [("latin-1", "éé"), ("gbk", "中文"), ("shift_jis", "表示"), ("utf-8", "é😀")]
)
def test_columns_are_code_points_whatever_the_encoding(check: Check, root: Path, encoding: str, word: str) -> None:
    line = f'    "{word}"; t[i] = -1\n'
    (root / "odd.py").write_bytes(f"# coding: {encoding}\n{TENSORS}{line}".encode(encoding))
    assert f"odd.py:8:{line.index('t[i]') + 1}: NSL101" in check("odd.py").reported


def test_a_suppression_counts_with_any_line_end(check: Check, root: Path) -> None:
    for end in ("\n", "\r\n", "\r"):
        (root / "good.py").write_bytes(
            GOOD.replace("-1\n", "-1  # nosync-lint: ignore[NSL101] known\n").replace("\n", end).encode()
        )
        assert check().reported == [], ascii(end)


DEEP = {
    "attributes": "t" + ".a" * 5000,
    "calls": "t" + "()" * 5000,
    "subscripts": "t" + "[0]" * 5000,
    "signs": "-" * 5000 + "1",
    "negations": "not " * 5000 + "1",
    "sums": "1" + " + 1" * 5000,
    "conjunctions": "1" + " and 1" * 5000,
    "comparisons": "1" + " < 1" * 5000,
    "choices": "1 if t else " * 5000 + "1",
    "strings": '("a"' + '\n "b"' * 5000 + ")",
    "places in a string": 'f"' + "{1}" * 5000 + '"',
    "elements": "[" + "1, " * 30_000 + "]",
}


@pytest.mark.parametrize("case", DEEP)
def test_an_expression_of_thousands_of_parts_does_not_stop_the_function_around_it(
    check: Check, root: Path, case: str
) -> None:
    (root / "deep.py").write_text(f"{TENSORS}    x = {DEEP[case]}\n{STORE}")
    outcome = check("--select", "NSL101")
    assert len(outcome.reported) == 2
    assert FOUND in outcome.reported
    assert "deep.py" in outcome.reported[0]


def test_a_store_far_to_the_right_is_found(check: Check, root: Path) -> None:
    (root / "wide.py").write_text(f"{TENSORS}    x = [{'1, ' * 30_000}]; t[i] = -1\n")
    assert check("wide.py").reported == ["wide.py:7:90013: NSL101"]


def nested(count: int, head: str, last: str) -> str:
    return "".join(" " * n + head + "\n" for n in range(count)) + " " * count + last + "\n"


LARGE = {
    "5,000 branches": (f"{TENSORS}    if i: pass\n" + "    elif i: pass\n" * 5000 + STORE, 5008),
    "10,000 lines of conditions": (TENSORS + "    if i:\n        x = 1\n" * 5000 + STORE, 10_007),
    "a chain of 5,000 names": (
        TENSORS + "    x0 = t\n" + "".join(f"    x{n + 1} = x{n} + 1\n" for n in range(5000)) + "    x5000[i] = -1\n",
        5008,
    ),
    "5,000 values of one name": (TENSORS + "    t = t + 1\n" * 5000 + STORE, 5007),
    "a chain of 3,000 functions": (
        TENSORS
        + "    f0(t, i)\n"
        + "".join(f"def f{n}(t, i):\n    f{n + 1}(t, i)\n" for n in range(3000))
        + f"def f3000(t, i):\n{STORE}",
        6009,
    ),
    "a chain of 3,000 results": (
        "import torch\n"
        + "".join(f"def f{n}():\n    return f{n + 1}()\n" for n in range(3000))
        + 'def f3000():\n    return torch.zeros(4, device="cuda")\n'
        + 'def g():\n    f0()[torch.arange(2, device="cuda")] = -1\n',
        6005,
    ),
    "90 nested blocks": (
        TENSORS + "    if 1:\n" + re.sub("^", "     ", nested(90, "if 1:", "t[i] = -1"), flags=re.M),
        98,
    ),
    "30,000 generated lines": (
        TENSORS + "".join(f"    x{n} = t[{n}]\n" for n in range(20_000)) + STORE + "def g(a):\n    return a\n" * 5000,
        20_007,
    ),
}


@pytest.mark.parametrize("case", LARGE)
def test_large_and_deep_programs_are_linted_to_the_end(check: Check, root: Path, case: str) -> None:
    text, row = LARGE[case]
    (root / "large.py").write_text(text.replace("     \n", "\n"))
    outcome = check()
    assert outcome.code == 1, outcome.out[-500:] + outcome.err
    assert [one for one in outcome.reported if one.startswith(f"large.py:{row}:")]
    assert FOUND in outcome.reported


@pytest.mark.parametrize(
    "cuda", ["(" * 5000 + ")" * 5000, "{" * 5000 + "}" * 5000, "if (0) {}" + " else if (1) {}" * 5000]
)
def test_deep_cuda_files_do_not_stop_the_run(check: Check, root: Path, cuda: str) -> None:
    (root / "deep.cu").write_text(f"void f() {{ {cuda} }}\n")
    assert FOUND in check().reported


PROGRAMS = {
    "a class that inherits from itself": {"a.py": "class A(A):\n    def free(self, i): self.free(i)\n"},
    "classes that inherit from each other": {"a.py": "class A(B):\n    def free(self): ...\nclass B(A):\n    pass\n"},
    "bases in no order": {"a.py": "class O: ...\nclass X(O): ...\nclass A(O, X):\n    def free(self): self.free()\n"},
    "a metaclass and computed bases": {"a.py": "class A(*b, metaclass=m(), **k): ...\nclass B(f(), g[0]): ...\n"},
    "modules that import each other": {
        "a.py": "import b\nfrom b import x\ny = x\n",
        "b.py": "from a import y\nx = y\n",
    },
    "stars in a circle": {"a.py": "from b import *\n", "b.py": "from c import *\n", "c.py": "from a import *\nf()\n"},
    "a module that imports itself": {"a.py": "import a\nfrom a import *\nfrom . import a as b\nfrom .... import c\n"},
    "a package and a module of one name": {"m/__init__.py": "def f(): ...\n", "m.py": "def f(): ...\n"},
    "two packages of one name": {"p/__init__.py": "x = 1\n", "src/p/__init__.py": "x = 2\n"},
    "names defined by themselves": {"a.py": "x = x\ny = z\nz = y\nf = f()\ng = lambda: g()\nd = {}\nd[0] = d\n"},
    "functions that call each other": {"a.py": "def f(t): return g(t)\ndef g(t): return f(t)\nf(g)\n"},
    "conditional definitions": {
        "a.py": "if x:\n    def f(): ...\nelse:\n    f = None\ntry:\n    import y\nexcept E: y = 0\n"
    },
    "odd targets": {
        "a.py": "def f(t, i):\n    for t[i] in t: ...\n    with t as t[i]: ...\n    del t[i]\n    t[i]: int = 1\n"
    },
}


@pytest.mark.parametrize("case", PROGRAMS)
def test_a_program_that_could_not_run_is_linked_all_the_same(check: Check, root: Path, case: str) -> None:
    for name, text in PROGRAMS[case].items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    outcome = check()
    assert (outcome.code, outcome.reported, outcome.err) == (1, [FOUND], "")
    assert "failed:" not in outcome.out


def test_a_long_line_of_subclasses_does_not_take_minutes(root: Path) -> None:
    classes = "class C0:\n    def free(self, i): self.t[i] = -1\n    def alloc(self): ...\n"
    (root / "bases.py").write_text(classes + "".join(f"class C{n + 1}(C{n}): pass\n" for n in range(300)))
    assert FOUND in spawn("check", "--no-cache", "--heat", "any", ".", timeout=10).stdout


def test_a_number_too_long_to_print_is_stored_like_any_other(check: Check, root: Path) -> None:
    (root / "long.py").write_text(f"{TENSORS}    t[i] = 0x{'f' * 6000}\n")
    outcome = check()
    assert outcome.code == 1, outcome.out
    assert outcome.reported == [FOUND, "long.py:7:5: NSL101"]


# Files that change while they are linted


@pytest.mark.parametrize("change", ["removed", "a folder"])
def test_a_file_that_changes_before_it_is_read_is_a_finding(
    check: Check, root: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    (root / "bad.py").write_text(GOOD)

    def late(*arguments: Any) -> object:
        (root / "bad.py").unlink()
        if change == "a folder":
            (root / "bad.py").mkdir()
        return index(*arguments)

    monkeypatch.setattr(pipeline, "index", late)
    check().unreadable("bad.py", "cannot be read")


@pytest.mark.parametrize("change", ["removed", "emptied"])
def test_a_file_that_changes_after_it_is_read_is_not_taken_for_clean(
    check: Check, root: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    (root / "late.py").write_text(GOOD)

    def late(*arguments: Any) -> object:
        (root / "late.py").unlink()
        if change == "emptied":
            (root / "late.py").touch()
        return judge(*arguments)

    monkeypatch.setattr(pipeline, "judge", late)
    outcome = check()
    assert outcome.code in (1, 2)
    assert FOUND in outcome.out
    assert "late.py" in outcome.out


# Usage and configuration


@pytest.mark.parametrize("option", ["--select", "--ignore"])
def test_an_unknown_rule_is_an_error_that_names_the_nearest(check: Check, option: str) -> None:
    check(option, "scalar-index-wite").one_line_error(
        "scalar-index-wite", "did you mean `scalar-index-write`?", "--all"
    )


CONFIGURATIONS = {
    '[tool.nosync-lint]\nhott = ["x"]\n': "did you mean `hot`?",
    '[tool.nosync-lint]\nhot = "x"\n': "`hot` must be a list of strings",
    '[tool.nosync-lint]\nheat = "boiling"\n': "hot, warm, any",
    '[tool.nosync-lint]\nmax-file-size = "10MB"\n': "`max-file-size`",
    "[tool.nosync-lint]\nmax-file-size = -3\n": "`max-file-size`",
    '[tool.nosync-lint]\ncache-dir = ""\n': "`cache-dir`",
    '[tool.nosync-lint]\nselect = ["NSL999"]\n': "NSL999",
    '[tool.nosync-lint]\ntarget-torch = "new"\n': "new",
    '[tool.nosync-lint]\ncontract = [{base = "A"}]\n': "lacks method, argument",
    '[[tool.nosync-lint.census]]\nfiles = "*.cu"\nmatches = "3"\n': "`census.matches`",
    '[[tool.nosync-lint.census]]\nfiles = "*.cu"\nmatches = 3\nwhere = "zork"\n': "rank=3",
    "[tool]\nnosync-lint = 3\n": "must be a table",
    "# nosync-lint\ntool = 3\n": "must be a table",
    "# nosync-lint\n[tool\n": "is not valid TOML",
}


@pytest.mark.parametrize("text", CONFIGURATIONS)
def test_a_wrong_configuration_is_an_error_that_names_file_and_cure(check: Check, root: Path, text: str) -> None:
    (root / "pyproject.toml").write_text(text)
    check().one_line_error("pyproject.toml", CONFIGURATIONS[text])


def test_the_header_of_pyproject_in_our_own_file_is_told_so(check: Check, root: Path) -> None:
    (root / "nosync-lint.toml").write_text('[tool.nosync-lint]\nheat = "any"\n')
    check().one_line_error("nosync-lint.toml", "[tool.nosync-lint]")


@pytest.mark.parametrize("name", ["absent.toml", "."])
def test_a_configuration_that_cannot_be_read_is_an_error_that_names_it(check: Check, name: str) -> None:
    check("--config", name).one_line_error(name, "cannot be read")


@pytest.mark.parametrize(
    "text",
    [
        "project = 3\n",
        "[project]\ndependencies = 3\n",
        "[project]\noptional-dependencies = 3\n",
        "[project]\noptional-dependencies = {a = 3}\n",
        "[tool\n",
        '[project]\ndependencies = ["torch >="]\n',
    ],
)
def test_a_project_file_that_is_not_for_us_stops_nothing(check: Check, root: Path, text: str) -> None:
    (root / "pyproject.toml").write_text(text)
    outcome = check()
    assert (outcome.code, outcome.reported) == (1, [FOUND])


@pytest.mark.parametrize("name", ["NOSYNC_LINT_NO_CACHE", "NOSYNC_LINT_OUTPUT_FORMAT"])
def test_a_wrong_environment_variable_is_an_error_that_names_it(
    command: Check, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, "zork")
    command("check", ".").one_line_error(name, "zork")


def test_paths_in_a_configuration_are_relative_to_it(check: Check, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "made" / "inner").mkdir(parents=True)
    (root / "made" / "inner" / "a.py").write_text(GOOD)
    (root / "nosync-lint.toml").write_text('exclude = ["made/inner"]\nextra-sources = ["made"]\n')
    assert check(".").reported == [FOUND]
    monkeypatch.chdir(root / "made")
    assert check(".").reported == []
    monkeypatch.chdir(root.parent)
    assert check("project").reported == [f"project/{FOUND}"]


COMMENTS = {
    "# nosync-lint: ignore[NSL101": "]",
    "# nosync-lint: zork": "no known form",
    "# nosync-lint:": "no known form",
    "# nosync-lint: ignore[nope] reason": "`nope`",
    "# nosync-lint: off[NSL101": "]",
}


@pytest.mark.parametrize("comment", COMMENTS)
def test_a_malformed_comment_is_told_what_is_wrong_with_it(check: Check, root: Path, comment: str) -> None:
    (root / "bad.py").write_text(f"x = 1  {comment}\n")
    outcome = check()
    (told,) = [line for line in outcome.out.splitlines() if line.startswith("bad.py:1:") and "NSL001" in line]
    assert COMMENTS[comment] in told
    assert FOUND in outcome.reported


def test_an_unclosed_list_of_rules_suppresses_nothing(check: Check, root: Path) -> None:
    (root / "good.py").write_text(GOOD.replace("-1\n", "-1  # nosync-lint: ignore[NSL301\n"))
    assert FOUND in check().reported


# The cache


def database(root: Path) -> Path:
    (path,) = (root / ".nosync_lint_cache").glob("*/*.sqlite")
    return path


DAMAGES: dict[str, Callable[[Path], object]] = {
    "truncated": lambda path: os.truncate(path, 5000),
    "emptied": lambda path: os.truncate(path, 0),
    "overwritten": lambda path: path.write_bytes(os.urandom(8192)),
    "no longer a file": lambda path: become_a_folder(path),
    "of another shape": lambda path: execute(path, "DROP TABLE entries", "CREATE TABLE entries (a INT)"),
    "full of other bytes": lambda path: execute(path, "UPDATE entries SET facts = X'00'"),
    "full of text": lambda path: execute(path, "UPDATE entries SET facts = 'abc'"),
}


def become_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def execute(path: Path, *statements: str) -> None:
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_cache_costs_time_and_no_result(command: Check, root: Path, damage: str) -> None:
    first = command("check", "--heat", "any", ".")
    DAMAGES[damage](database(root))
    assert command("check", "--heat", "any", ".") == first
    assert command("check", "--heat", "any", ".") == first


def test_a_cache_that_cannot_be_made_costs_nothing_but_time(command: Check, root: Path) -> None:
    (root / "file").touch()
    for folder in ("file", "file/inner", "/proc/none"):
        outcome = command("check", "--heat", "any", "--cache-dir", folder, ".")
        assert (outcome.code, outcome.reported, outcome.err) == (1, [FOUND], "")


def test_a_cache_that_another_run_holds_is_left_alone(
    command: Check, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command("check", ".")
    path = database(root)
    original = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *a, **k: original(*a, **{**k, "timeout": 0.1}))
    holder = original(path)
    holder.execute("PRAGMA journal_mode=DELETE")
    holder.execute("BEGIN EXCLUSIVE")
    inode = path.stat().st_ino
    assert command("check", "--heat", "any", ".").reported == [FOUND]
    assert path.stat().st_ino == inode
    holder.close()


def test_a_cache_folder_with_files_of_its_own_is_neither_marked_nor_removed(command: Check, root: Path) -> None:
    (root / ".gitignore").write_text("mine\n")
    command("check", "--cache-dir", ".", ".")
    assert (root / ".gitignore").read_text() == "mine\n"
    assert FOUND in command("check", "--heat", "any", "--cache-dir", ".", ".").reported
    command("clean", "--cache-dir", str(root))
    assert (root / "good.py").exists()


def test_cleaning_leaves_the_cache_of_another_tool(command: Check, root: Path) -> None:
    (root / "other").mkdir()
    (root / "other" / "CACHEDIR.TAG").write_text("Signature: 8a477f597d28d172789f06886806bc55\n")
    (root / "other" / "precious").touch()
    command("clean", "--cache-dir", "other")
    assert (root / "other" / "precious").exists()


def test_cleaning_finds_the_cache_that_checking_made(
    command: Check, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "nosync-lint.toml").touch()
    (root / "inner").mkdir()
    command("check", ".")
    monkeypatch.chdir(root / "inner")
    command("clean")
    assert not (root / ".nosync_lint_cache").exists()


# Rules and engine that fail


class Failing(Rule):
    """A rule of another distribution, which says the same as one of ours."""

    code = "XYZ900"
    since = "0.1.0"
    severity = Severity.ERROR
    sites = ("scalar-index-write",)

    def judge(self, site: object, program: Program) -> Iterator[Judgement]:
        ours = registry.find("NSL101")
        assert ours is not None
        yield from ours.judge(site, program)


@pytest.fixture
def third_party(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[object], None]]:
    """Installs one entry point that gives (or raises) what it is told."""

    def install(given: object) -> None:
        class Fake(EntryPoint):
            def load(self) -> object:
                if isinstance(given, Exception):
                    raise given
                return given

        entry = Fake("acme", "acme_rules:Failing", registry.ENTRY_POINTS)
        monkeypatch.setattr(registry, "entry_points", lambda group: [entry])
        registry.rules.cache_clear()

    yield install
    monkeypatch.undo()
    registry.rules.cache_clear()


@pytest.mark.parametrize("error", [RuntimeError("bang"), RecursionError("deep"), MemoryError()])
def test_a_rule_that_crashes_is_named_and_the_others_go_on(
    check: Check, third_party: Callable[[object], None], monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def judge(*arguments: object) -> None:
        raise error

    monkeypatch.setattr(Failing, "judge", judge)
    third_party(Failing)
    outcome = check()
    assert outcome.code == 2
    (told,) = [line for line in outcome.out.splitlines() if line.startswith("failed: ")]
    assert "XYZ900" in told
    assert "good.py:7" in told
    assert outcome.reported == [FOUND]


def test_a_rule_whose_shape_crashes_is_named_and_the_others_go_on(
    check: Check, third_party: Callable[[object], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def shape() -> None:
        raise ValueError("bang")

    monkeypatch.setattr(Failing, "shape", staticmethod(shape))
    third_party(Failing)
    outcome = check()
    assert outcome.code == 2
    assert "XYZ900" in outcome.out
    assert FOUND in outcome.reported


@pytest.mark.parametrize(
    "given", [ImportError("no module named zork"), int, Rule], ids=["error", "no rule", "abstract"]
)
def test_rules_that_cannot_be_loaded_are_named_and_the_others_go_on(
    check: Check, third_party: Callable[[object], None], given: object
) -> None:
    third_party(given)
    outcome = check()
    assert outcome.code == 2
    assert "acme" in outcome.out + outcome.err


def test_a_failure_of_the_engine_is_one_line_and_never_looks_like_findings(
    check: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    def link(*arguments: object) -> None:
        raise RuntimeError("bang")

    monkeypatch.setattr(pipeline, "link", link)
    outcome = check()
    assert outcome.code == 2
    assert "RuntimeError: bang" in outcome.err


# Output


def test_a_report_that_cannot_be_written_is_an_error_that_names_the_file(check: Check, root: Path) -> None:
    check("-o", "absent/report.txt").one_line_error("absent/report.txt", "cannot be written")
    check("-o", ".").one_line_error("cannot be written")
    if Path("/dev/full").exists():
        check("-o", "/dev/full").one_line_error("/dev/full", "cannot be written")


@pytest.mark.parametrize("redirection", [">&-", ">/dev/full"])
def test_a_lost_standard_output_is_a_failure_without_a_traceback(root: Path, redirection: str) -> None:
    words = f"{sys.executable} -m nosync_lint check --no-cache --heat any . {redirection}"
    done = subprocess.run(["sh", "-c", words], stderr=subprocess.PIPE, text=True, timeout=30, check=False)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_a_reader_that_goes_away_is_no_traceback(root: Path) -> None:
    for n in range(300):
        (root / f"m{n}.py").write_text(GOOD)
    words = f"{sys.executable} -m nosync_lint check --no-cache --heat any . | head -n 1"
    done = subprocess.run(["sh", "-c", words], capture_output=True, text=True, timeout=30, check=False)
    assert done.stdout.count("\n") == 1
    assert done.stderr == ""


def test_any_encoding_can_print_the_report(root: Path) -> None:
    (root / "日本.py").write_text(GOOD)
    for color in ("never", "always"):
        done = spawn(
            "check",
            "--no-cache",
            "--heat",
            "any",
            "--color",
            color,
            ".",
            env={**os.environ, "PYTHONIOENCODING": "ascii"},
        )
        assert done.returncode == 1, done.stderr
        assert r"\u65e5\u672c.py" in done.stdout


# Same input, same output


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_workers_cache_and_order_do_not_change_a_byte(
    command: Check, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(20):
        (root / f"d{n % 4}").mkdir(exist_ok=True)
        (root / f"d{n % 4}" / f"m{n}.py").write_text(f"from m{(n + 1) % 20} import f as g\n{GOOD}    g()\n")
    (root / "bad.py").write_text("def (\n")
    monkeypatch.setattr("nosync_lint.index.SMALL_RUN", 0)
    lint = ("check", "--heat", "any", "--min-confidence", "possible", "--output-format", "json")
    first = command(*lint, "-n", "-j", "1", ".")
    assert len(json.loads(first.out)["findings"]) == 22
    for arguments in (
        ("-n", "-j", "2", "."),
        ("-n", "-j", "8", "."),
        ("-n", "-j", "0", "."),
        ("-j", "0", "."),
        ("-j", "1", "."),
        ("-n", "-j", "1", "good.py", "d3", "d2", "d1", "d0", "bad.py"),
        ("-n", "-j", "1", "bad.py", "d0", "d1", "d2", "d3", "good.py"),
        ("-n", "-j", "1", str(root), "d0", "."),
    ):
        assert command(*lint, *arguments) == first


@pytest.mark.parametrize("order", [("a", "b"), ("b", "a")])
def test_the_order_of_paths_does_not_choose_the_configuration(check: Check, root: Path, order: tuple[str, ...]) -> None:
    for name, text in (("a", 'ignore = ["NSL101"]\n'), ("b", "")):
        (root / name).mkdir()
        (root / name / "x.py").write_text(GOOD)
        (root / name / "nosync-lint.toml").write_text(text)
    assert check(*order) == check(*sorted(order))


def test_two_runs_at_the_same_time_both_report(root: Path) -> None:
    words = [sys.executable, "-m", "nosync_lint", "check", "--heat", "any", "."]
    runs = [subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    told = [one.communicate(timeout=30) for one in runs]
    assert len(set(told)) == 1
    assert FOUND in told[0][0]


# The linted project stays data

TRIPWIRES = ["setup", "conftest", "sitecustomize", "__init__", "libcst", "rich", "json", "tomllib", "pathspec"]


@pytest.mark.parametrize("before", [(), ("-P",)], ids=["plain", "safe path"])
def test_nothing_of_the_linted_project_is_executed(root: Path, before: tuple[str, ...]) -> None:
    trap = f"open({str(root / 'EXECUTED')!r}, 'a').write(__file__)\nraise SystemExit(7)\n"
    for name in TRIPWIRES:
        (root / f"{name}.py").write_text(trap)
    done = spawn("check", "--no-cache", "--heat", "any", "--color", "always", ".", before=before)
    assert not (root / "EXECUTED").exists()
    assert done.returncode == 1, done.stderr
    assert "NSL101" in done.stdout
