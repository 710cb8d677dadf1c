"""Whom a CODEOWNERS names as the owner of a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from nosync_lint.config import Settings
from nosync_lint.owners import PLACES, Owned, owners
from nosync_lint.pipeline import run
from nosync_lint.source import SourceFile

RULES = """\
# who owns what
*               @everyone
*.cuh           @kernels @gpu   # two of them
/serve/         @serving
docs/*          @writers
/serve/vendor/
[Section][2] @not-read
serve/pool.py   pool@example.org
"""


def asked(folder: Path, *names: str, below: str = "") -> Owned:
    return owners(folder / below, [SourceFile(folder / name, name) for name in names])


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / ".git").mkdir()
    (tmp_path / "CODEOWNERS").write_text(RULES)
    return tmp_path


OWNERS: Sequence[tuple[str, str]] = (
    ("setup.py", "@everyone"),
    ("kernels/a.cuh", "@kernels @gpu"),
    ("serve/loop.py", "@serving"),
    ("serve/a/b/loop.cuh", "@serving"),
    ("other/serve/loop.py", "@everyone"),
    ("docs/conf.py", "@writers"),
    ("docs/deep/conf.py", "@everyone"),
    ("serve/pool.py", "pool@example.org"),
)


@pytest.mark.parametrize(("name", "owner"), OWNERS)
def test_the_last_pattern_that_matches_decides(project: Path, name: str, owner: str) -> None:
    assert asked(project, name) == Owned({name: owner})


def test_a_pattern_without_an_owner_takes_it_away(project: Path) -> None:
    assert asked(project, "serve/vendor/a.py") == Owned({})


def test_files_outside_the_repository_have_no_owner(project: Path) -> None:
    outside = SourceFile(project.parent / "elsewhere.py", "../elsewhere.py")
    assert owners(project, [outside]) == Owned({})


@pytest.mark.parametrize("place", PLACES)
def test_it_is_found_above_the_project_up_to_the_repository(tmp_path: Path, place: str) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "inner").mkdir()
    (tmp_path / place).parent.mkdir(exist_ok=True)
    (tmp_path / place).write_text("inner/ @us\n")
    assert asked(tmp_path, "inner/a.py", below="inner") == Owned({"inner/a.py": "@us"})


def test_it_is_not_looked_for_above_the_repository(tmp_path: Path) -> None:
    (tmp_path / "CODEOWNERS").write_text("* @us\n")
    (tmp_path / "inner" / ".git").mkdir(parents=True)
    assert asked(tmp_path, "inner/a.py", below="inner") == Owned({})


def test_a_report_names_the_owners_of_files_with_findings(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)
    text = "import torch\n\ndef step(x: torch.Tensor):  # nosync-lint: hot\n    return x.cuda().unique()\n"
    for name in ("serve/loop.py", "other.py"):
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_text(text)
    (project / "clean.py").write_text("x = 1\n")
    report = run(["."], Settings(), cache=False, jobs=1)
    assert report.owners == {"serve/loop.py": "@serving", "other.py": "@everyone"}
    (project / "CODEOWNERS").write_bytes(b"* \xff\n")
    broken = run(["."], Settings(), cache=False, jobs=1)
    assert broken.owners == {}
    assert [note for note in broken.notes if "CODEOWNERS is not valid utf-8" in note]


def test_one_that_cannot_be_read_is_told(project: Path) -> None:
    (project / "CODEOWNERS").write_bytes(b"* \xff\n")
    assert asked(project, "a.py").trouble.startswith(f"{project / 'CODEOWNERS'} is not valid utf-8")
