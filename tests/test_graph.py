"""`nosync-lint graph`: the calls from hot roots to syncs, as text, DOT, Mermaid and SVG."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from textwrap import dedent
from typing import Any
from xml.etree import ElementTree

import pytest

from nosync_lint import pipeline
from nosync_lint.cli import main
from nosync_lint.discover import Discovered, discover
from nosync_lint.report.tree import FORMATS

Capture = pytest.CaptureFixture[str]
Graph = Callable[..., str]

SERVE = {
    "serve/__init__.py": "",
    "serve/loop.py": """\
        import torch

        from serve.work import helper, quiet, read


        class Loop:
            def __init__(self) -> None:
                self.table = torch.zeros(8, dtype=torch.int64, device="cuda")
                self.report()

            def step(self):  # nosync-lint: hot
                quiet()
                helper(self.table)
                return read(self.table) + self.table.max().item()

            def free(self):  # nosync-lint: hot
                return read(self.table)

            def report(self):
                return self.table.sum().item()

            def idle(self):  # nosync-lint: hot
                quiet()
        """,
    "serve/work.py": """\
        def helper(values):
            if values.any():
                return again(values, 3)


        def again(values, count):
            if count:
                return helper(values)
            read(values)
            return read(values)


        def read(values):
            return values.sum().item()


        def quiet():
            return 1


        def guess(something):  # nosync-lint: hot
            return something.item()
        """,
}


@pytest.fixture
def graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> Graph:
    """Writes files into an empty project and gives what `graph` prints."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, files: Mapping[str, str] = SERVE, code: int = 0) -> str:
        for name, text in {"nosync-lint.toml": 'target-torch = "2.13"\n', **files}.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(dedent(text), encoding="utf-8")
        assert main(["graph", "-j", "1", "--no-cache", *arguments]) == code
        printed = capsys.readouterr()
        return printed.err if code else printed.out

    return run


def test_the_tree_tells_each_function_once(graph: Graph) -> None:
    assert graph() == dedent("""\
        Loop.free serve/loop.py:16, hot root: marked hot
          17 -> read serve/work.py:13 [1]
            14: NSL201 item-read (certain) values.sum().item()
        Loop.step serve/loop.py:11, hot root: marked hot
          14: NSL201 item-read (certain) self.table.max().item()
          13 -> helper serve/work.py:1 [2]
            2: NSL204 truth-test-on-device-tensor (certain) values.any()
            3 -> again serve/work.py:6
              8 -> helper, see [2]
              9, 10 -> read, see [1]
          14 -> read, see [1]
        3 syncs in 5 functions below 2 hot roots
        """)


def test_a_root_is_named_by_the_end_of_its_name(graph: Graph) -> None:
    told = graph("--root", "Loop.free")
    assert told.splitlines()[0] == "Loop.free serve/loop.py:16, hot root: marked hot"
    assert told == graph("--root", "serve.loop.Loop.free")
    assert "Loop.step" not in told


def test_roots_given_with_hot_are_roots(graph: Graph) -> None:
    told = graph("--hot", "Loop.report", "--root", "Loop.report")
    assert told.splitlines()[0] == "Loop.report serve/loop.py:19, hot root: given as hot root"
    assert "20: NSL201 item-read" in told


def test_the_least_confidence_decides_which_syncs_are_shown(graph: Graph) -> None:
    assert "guess" not in graph()
    assert "NSL201 item-read (possible) something.item()" in graph("--min-confidence", "possible")


def test_depth_cuts_the_tree_and_counts_what_is_left_out(graph: Graph) -> None:
    assert graph("--root", "Loop.step", "--depth", "1") == dedent("""\
        Loop.step serve/loop.py:11, hot root: marked hot
          14: NSL201 item-read (certain) self.table.max().item()
          13 -> helper serve/work.py:1
            2: NSL204 truth-test-on-device-tensor (certain) values.any()
            ... 1 sync below
          14 -> read serve/work.py:13
            14: NSL201 item-read (certain) values.sum().item()
        3 syncs in 4 functions below 1 hot root
        """)


def test_suppressed_syncs_are_not_shown(graph: Graph) -> None:
    files = {
        "main.py": """\
            import torch

            def step(x: torch.Tensor):  # nosync-lint: hot
                return x.cuda().item()  # nosync-lint: ignore[item-read, blocking-upload] once
            """
    }
    assert graph(files=files) == "0 syncs in 0 functions below 0 hot roots\n"


def test_a_project_without_roots_says_so(graph: Graph) -> None:
    told = graph(files={"main.py": "x = 1\n"})
    assert "note: no hot root matches anything here: name one with --hot or `hot = [...]`" in told


def test_a_root_that_leads_to_nothing_says_so(graph: Graph) -> None:
    assert "note: `Loop.idle` leads to nothing that waits" in graph("--root", "Loop.idle")


WRONG = {
    "Loop.stepp": "no hot root is called `Loop.stepp`; the nearest are `Loop.step`",
    "Loop.report": "`serve.loop.Loop.report` is no hot root; make it one with `--hot Loop.report`",
    "zzzzzz": "no hot root is called `zzzzzz`",
}


@pytest.mark.parametrize("name", WRONG)
def test_a_root_that_names_nothing_ends_with_2(graph: Graph, name: str) -> None:
    assert WRONG[name] in graph("--root", name, code=2)


def test_a_depth_must_be_a_number(graph: Graph) -> None:
    with pytest.raises(SystemExit) as stopped:
        graph("--depth", "-1")
    assert stopped.value.code == 2


def test_the_order_of_files_changes_nothing(monkeypatch: pytest.MonkeyPatch, graph: Graph) -> None:
    first = [graph("--output-format", form) for form in FORMATS]

    def backwards(*given: Any) -> Discovered:
        found = discover(*given)
        return replace(found, files=found.files[::-1])

    monkeypatch.setattr(pipeline, "discover", backwards)
    assert [graph("--output-format", form) for form in FORMATS] == first


def test_the_tree_can_be_written_to_a_file(graph: Graph, tmp_path: Path) -> None:
    assert graph("-o", "tree.txt") == ""
    assert (tmp_path / "tree.txt").read_text(encoding="utf-8") == graph()


# -- what the formats allow --

DOT = re.compile(
    r'digraph nosync \{|\}|  rankdir=LR;|  node \[shape=box, fontname="monospace"\];'
    r'|  (?P<node>\w+) \[label="(?P<label>(?:[^"\\]|\\.)*)"(?:, \w+=\w+)*\];'
    r'|  (?P<from>\w+) -> (?P<to>\w+)(?: \[(?:label="(?:[^"\\]|\\.)*"|style=dotted)\])?;'
)
MERMAID = re.compile(
    r"flowchart LR"
    r'|  (?P<node>\w+)(?:\["(?P<label>[^"]*)"\]|\{\{"(?P<leaf>[^"]*)"\}\}|\(\["(?P<cut>[^"]*)"\]\))'
    r'|  (?P<from>\w+) (?:-->|-\.->)(?:\|"[^"]*"\|)? (?P<to>\w+)'
)
EVIL = {
    'we"i]r{d/größe.py': """\
        import torch

        class Größe:
            def step(self, rows):  # nosync-lint: hot
                rows = {"a\\"]; evil [label=<b>] \\\\n -->|x| #35; `": torch.zeros(3, device="cuda")}
                return rows["a\\"]; evil [label=<b>] \\\\n -->|x| #35; `"].sum().item()
        """
}


def parsed(text: str, grammar: re.Pattern[str]) -> tuple[list[str], list[tuple[str, str]]]:
    """The labels of the nodes and the edges of a graph, each line of which the grammar must allow."""
    labels, edges, nodes = [], [], set()
    for line in text.splitlines():
        found = grammar.fullmatch(line)
        assert found is not None, line
        groups = found.groupdict()
        if groups["node"]:
            nodes.add(groups["node"])
            labels.append(next(groups[key] for key in ("label", "leaf", "cut") if groups.get(key) is not None))
        if groups["from"]:
            edges.append((groups["from"], groups["to"]))
    assert nodes >= {end for edge in edges for end in edge}
    return labels, edges


@pytest.mark.parametrize("arguments", [(), ("--depth", "1")], ids=["whole", "cut"])
def test_dot_follows_its_grammar(graph: Graph, arguments: tuple[str, ...]) -> None:
    labels, edges = parsed(graph("--output-format", "dot", *arguments), DOT)
    assert "Loop.step\\nserve/loop.py:11" in labels
    assert ("f0", "f1") in edges


@pytest.mark.parametrize("arguments", [(), ("--depth", "1")], ids=["whole", "cut"])
def test_mermaid_follows_its_grammar(graph: Graph, arguments: tuple[str, ...]) -> None:
    labels, edges = parsed(graph("--output-format", "mermaid", *arguments), MERMAID)
    assert "Loop.step<br/>serve/loop.py:11" in labels
    assert ("f0", "f1") in edges


def test_both_graphs_hold_the_same_edges(graph: Graph) -> None:
    _, dot = parsed(graph("--output-format", "dot"), DOT)
    _, mermaid = parsed(graph("--output-format", "mermaid"), MERMAID)
    assert dot == mermaid
    assert len(dot) == 9


def test_dot_escapes_what_comes_from_the_project(graph: Graph) -> None:
    text = graph("--output-format", "dot", files=EVIL)
    labels, _ = parsed(text, DOT)
    assert text.isascii()
    assert not re.search(r"[<>]", "".join(labels))
    plain = [html.unescape(label).replace("\\n", "\n").replace("\\\\", "\\") for label in labels]
    assert plain[0] == 'Größe.step\nwe"i]r{d/größe.py:4'
    assert len(plain) == 2


def test_mermaid_escapes_what_comes_from_the_project(graph: Graph) -> None:
    text = graph("--output-format", "mermaid", files=EVIL)
    labels, _ = parsed(text, MERMAID)
    assert text.isascii()
    for label in labels:
        assert re.fullmatch(r"(?:[A-Za-z0-9 _.,:()/=+*-]|#[0-9]+;|<br/>)*", label), label
    plain = re.sub(r"#([0-9]+);", lambda match: chr(int(match[1])), labels[0].replace("<br/>", "\n"))
    assert plain == 'Größe.step\nwe"i]r{d/größe.py:4'


def test_svg_escapes_what_comes_from_the_project(graph: Graph) -> None:
    picture = ElementTree.fromstring(graph("--output-format", "svg", files=EVIL))
    titles = [one.text for one in picture.iter("{http://www.w3.org/2000/svg}title")]
    assert 'Größe.step, we"i]r{d/größe.py:4, hot root: marked hot' in titles
    assert len(titles) == 3


def test_text_cannot_move_the_cursor(graph: Graph) -> None:
    files = {
        "ma\x1b[2Jin.py": 'import torch\n\ndef step():  # nosync-lint: hot\n    torch.ones(3, device="cuda").tolist()\n'
    }
    told = graph(files=files)
    assert "\x1b" not in told
    assert "ma\\x1b[2Jin.py:3" in told
