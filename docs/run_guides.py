"""Runs what the guides show: their files are written, their commands run, what they print is compared, or written down.

In a guide, a line of a name in backquotes and a colon names the file that the fence below it holds. The lines of a `sh`
fence are run one after the other, and a `text` fence right below it shows what they print. Each guide has a folder of
its own, a git repository, that stays from its first line to its last.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
GUIDES = ROOT / "docs" / "guides"
NOT_RUN = ("pip install ", "pre-commit ")
"""Commands that need a network."""
INSTALL = "pip install -e ."
"""Is taken for what it does to the folder: its metadata, which is found where Python looks for modules."""
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.S | re.M)
_NAME = re.compile(r"`([\w./-]+)`:\n\n$")


class Block(NamedTuple):
    """A fence: where its content lies in the text, its language, the name of the file that it is, and the content."""

    start: int
    end: int
    language: str
    name: str | None
    content: str


class Wrong(Exception):
    """A guide that does not hold."""


def blocks(text: str) -> list[Block]:
    """The fences of a guide in their order."""
    found = []
    for fence in _FENCE.finditer(text):
        name = _NAME.search(text, 0, fence.start())
        found.append(Block(fence.start(2), fence.end(2), fence[1], name[1] if name else None, fence[2]))
    return found


def commands(block: Block) -> Iterator[str]:
    """The commands of a fence that are run here."""
    for line in block.content.splitlines():
        if line == INSTALL:
            yield 'python -c "import setuptools; setuptools.setup()" --quiet egg_info'
        elif not line.startswith(NOT_RUN):
            yield line


def current(text: str, folder: Path) -> str:
    """The guide with what its commands print now. Raises `Wrong` for a command that fails."""
    _git(folder, "init", "-q", "-b", "main")
    found = blocks(text)
    parts, last = [], 0
    for number, block in enumerate(found):
        following = found[number + 1] if number + 1 < len(found) else None
        if block.name is not None:
            path = folder / block.name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.content, encoding="utf-8")
        elif block.language == "sh":
            shown = following is not None and following.language == "text" and following.start - block.end < 20
            printed = "".join(_run(command, folder, fails=shown) for command in commands(block))
            if shown and following is not None:
                parts += [text[last : following.start], printed]
                last = following.end
    return "".join([*parts, text[last:]])


def _run(command: str, folder: Path, fails: bool) -> str:
    """What a command prints. Where that is shown it may end with 1: findings."""
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", command],
        cwd=folder, env={**_environment(), "PYTHONPATH": str(folder)},
        capture_output=True, text=True, encoding="utf-8", timeout=300, check=False,
    )  # fmt: skip
    if done.returncode > fails:
        raise Wrong(f"`{command}` ends with {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def _environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("NOSYNC", "GIT_", "FORCE_COLOR"))}
    who = {f"GIT_{role}_{part}": "guide@example.com" for role in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")}
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return {**kept, **who, "PATH": path, "NO_COLOR": "1", "NOSYNC_LINT_NO_CACHE": "1"}


def _git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=folder, env=_environment(), check=True)


def main(argv: Sequence[str] | None = None) -> int:
    """Compare all guides, or those of these names; with `--write` bring them up to date. 1 where one differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("guides", nargs="*", help="names of guides (default: all)")
    parser.add_argument("--write", action="store_true", help="write down what the commands print now")
    options = parser.parse_args(argv)
    code = 0
    for path in sorted(GUIDES.glob("*.md")):
        if options.guides and path.stem not in options.guides:
            continue
        text = path.read_text(encoding="utf-8")
        try:
            with tempfile.TemporaryDirectory() as folder:
                now = current(text, Path(folder))
        except Wrong as error:
            print(f"{path.name}: {error}", file=sys.stderr)
            code = 1
            continue
        if now != text:
            print(f"{'written' if options.write else 'not current'}: {path.relative_to(ROOT)}")
            if options.write:
                path.write_text(now, encoding="utf-8", newline="\n")
            else:
                code = 1
    return code


if __name__ == "__main__":
    raise SystemExit(main())
