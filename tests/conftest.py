"""Small programs for tests: linked in memory, or linted as files; and one compiled library of kernels per session."""

from __future__ import annotations

import os
import shutil
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any, NoReturn

import pytest

from nosync_lint.config import Settings, load_config
from nosync_lint.index.python import index_python
from nosync_lint.link.inference import At
from nosync_lint.link.program import Program
from nosync_lint.link.project import Class, Function
from nosync_lint.link.solver import with_room
from nosync_lint.link.values import Value
from nosync_lint.pipeline import run
from nosync_lint.report import Report
from nosync_lint.source import SourceFile

ROOT = Path(__file__).resolve().parent.parent
HEADER = "from __future__ import annotations\nimport torch\n"


class Linked:
    """A program of Python texts. `reveal(x)` in them marks the expressions to ask for."""

    def __init__(self, files: Mapping[str, str], **options: Any) -> None:
        listed = [
            (SourceFile(Path("/project", name), name), index_python(textwrap.dedent(text)))
            for name, text in files.items()
        ]
        self.program = Program(listed, [], **options)

    @property
    def values(self) -> list[Value]:
        """The values of all `reveal(x)`, in the order of files and rows."""
        value = self.program.inference.value
        asked = [
            (site.call[2][0], At(function, site.seq, site.block))
            for function in self.program.project.functions
            for site in function.record.calls
            if site.call[1] == ("name", "reveal")
        ]
        assert asked, "the program reveals nothing"
        return with_room(lambda: [value(expr, at) for expr, at in asked])

    @property
    def value(self) -> Value:
        (value,) = self.values
        return value

    def function(self, name: str) -> Function:
        """The function whose qualified name ends so."""
        (found,) = [f for f in self.program.project.functions if f.name == name or f.name.endswith("." + name)]
        return found

    def cls(self, name: str) -> Class:
        (found,) = [c for c in self.program.project.classes if c.name == name or c.name.endswith("." + name)]
        return found

    def callees(self, caller: str, called: str) -> list[str]:
        """The functions that the call of this name in a function may run."""
        function, project = self.function(caller), self.program.project
        (site,) = [site for site in function.record.calls if site.call[1][-1] == called]
        targets = with_room(lambda: self.program.inference.targets(function, site))
        return sorted(project.functions[target.function].name for target in targets)


Link = Callable[..., Linked]
Lint = Callable[..., Report]


@pytest.fixture(scope="session", autouse=True)
def kernel_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The libraries of this session are compiled once, from the tree as it is."""
    folder = tmp_path_factory.mktemp("kernels")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NOSYNC_KERNEL_CACHE", str(folder))
        yield folder


@pytest.fixture
def link() -> Link:
    """Links one text (with torch imported) or several files by their names."""

    def make(files: str | Mapping[str, str], **options: Any) -> Linked:
        if isinstance(files, str):
            files = {"main.py": HEADER + textwrap.dedent(files)}
        return Linked(files, **options)

    return make


@pytest.fixture
def lint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lint:
    """Writes files into an empty project and runs every stage over it. A `nosync-lint.toml` is its configuration."""
    root = tmp_path / "project"

    def run_over(
        files: Mapping[str, str | bytes],
        paths: tuple[str, ...] = (".",),
        jobs: int = 1,
        cache: bool = False,
        **given: Any,
    ) -> Report:
        for name, text in {"nosync-lint.toml": "", **files}.items():
            path = root / PurePosixPath(name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text if isinstance(text, bytes) else textwrap.dedent(text).encode())
        monkeypatch.chdir(root)
        settings = replace(load_config(root / "nosync-lint.toml"), **{"target_torch": ">=2.9", **given})
        assert isinstance(settings, Settings)
        return run(list(paths), settings, jobs=jobs, cache=cache)

    return run_over


@pytest.fixture(scope="session")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of this working tree, without what git ignores; it need not be a repository."""
    ignored = [line.rstrip("/") for line in (ROOT / ".gitignore").read_text(encoding="utf-8").split()]
    folder = tmp_path_factory.mktemp("tree") / "nosync-lint"
    shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(".git", *ignored))
    return folder


@pytest.fixture(scope="session")
def missing() -> Callable[[str], NoReturn]:
    """Skips a test for what the machine does not have. `.ci/run` has everything: there it fails."""

    def end(what: str) -> NoReturn:
        if os.environ.get("NOSYNC_LINT_MISS_NOTHING"):
            pytest.fail(what)
        pytest.skip(what)

    return end
