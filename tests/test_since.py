"""Reports about what changed since a revision: by the whole story of a finding, and with git as it may be."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from nosync_lint.cli import main

ROOT_FILE = "import leaf\n\ndef step(rows):  # nosync-lint: hot\n    leaf.middle(rows)\n"
MIDDLE = "import sink\n\ndef middle(rows):\n    sink.fill(rows)\n"
SINK = (
    "import torch\n\nTABLE = torch.zeros(8, device='cuda')\n\ndef fill(rows: torch.LongTensor):\n    TABLE[rows] = -1\n"
)
OTHER = "import torch\n\ndef wait(t: torch.Tensor):  # nosync-lint: hot\n    return t.cuda().item()\n"


def git(*command: str) -> str:
    options = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
    done = subprocess.run(["git", *options, *command], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def commit(message: str) -> str:
    git("add", "-A")
    git("commit", "-qm", message)
    return git("rev-parse", "HEAD")


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A project in a repository; gives its first commit."""
    monkeypatch.chdir(tmp_path)
    for name, text in {"root.py": ROOT_FILE, "leaf.py": MIDDLE, "sink.py": SINK, "other.py": OTHER}.items():
        Path(name).write_text(text)
    Path("nosync-lint.toml").touch()
    git("init", "-q", "-b", "main")
    return commit("base")


def found(capsys: pytest.CaptureFixture[str], *options: str) -> set[str]:
    """The files of what is shown."""
    capsys.readouterr()
    main(["check", "-q", "-n", "-j", "1", *options])
    return {line.partition(":")[0] for line in capsys.readouterr().out.splitlines() if ": NSL" in line}


def test_nothing_is_shown_where_nothing_changed(base: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert found(capsys) == {"sink.py", "other.py"}
    assert found(capsys, "--since", base) == set()
    main(["check", "-q", "-n", "-j", "1", "--since", base])
    assert "0 shown; hidden: 2 unchanged" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["root.py", "leaf.py", "sink.py"])
def test_a_finding_is_shown_where_any_part_of_its_flow_changed(
    name: str, base: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with Path(name).open("a") as file:
        file.write("\n# changed\n")
    assert found(capsys, "--since", base) == {"sink.py"}
    git("add", name)
    assert found(capsys, "--since", "HEAD") == {"sink.py"}
    commit("changed")
    assert found(capsys, "--since", base) == {"sink.py"}
    assert found(capsys, "--since", "HEAD") == set()


def test_untracked_files_count_as_changed_and_ignored_ones_do_not(
    base: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("new.py").write_text(OTHER)
    assert found(capsys, "--since", base) == {"new.py"}
    Path(".gitignore").write_text("new.py\n")
    assert found(capsys, "--since", base, ".", "new.py") == set()


def test_what_others_changed_meanwhile_does_not_count(base: str, capsys: pytest.CaptureFixture[str]) -> None:
    git("switch", "-qc", "mine")
    Path("leaf.py").write_text(MIDDLE + "# mine\n")
    commit("mine")
    git("switch", "-q", "main")
    Path("other.py").write_text(OTHER + "# theirs\n")
    commit("theirs")
    git("switch", "-q", "mine")
    assert found(capsys, "--since", "main") == {"sink.py"}


def test_it_works_from_below_and_from_beside(
    base: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    Path("sink.py").write_text(SINK + "# changed\n")
    (tmp_path / "deep").mkdir()
    monkeypatch.chdir(tmp_path / "deep")
    assert found(capsys, "--since", base, "..") == {"../sink.py"}
    monkeypatch.chdir("/")
    assert found(capsys, "--since", base, str(tmp_path)) == {f"{tmp_path}/sink.py".lstrip("/")}


def test_stale_entries_are_told_where_their_file_changed(base: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "-q", "-n", "-j", "1", "--baseline", "known.jsonl", "--write-baseline"]) == 0
    known = commit("known")
    Path("other.py").unlink()
    assert found(capsys, "--since", known, "--baseline", "known.jsonl") == {"known.jsonl"}
    since = commit("without")
    assert found(capsys, "--since", since, "--baseline", "known.jsonl") == set()


@pytest.mark.parametrize("revision", ["nowhere", "--all", "HEAD~7", "main:leaf.py"])
def test_an_unknown_revision_is_told(revision: str, base: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", f"--since={revision}"]) == 2
    assert capsys.readouterr().err == f"nosync-lint: error: --since {revision}: git knows no such revision\n"


def test_a_folder_without_a_repository_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    Path("a.py").write_text("x = 1\n")
    assert main(["check", "--since", "HEAD"]) == 2
    assert "is in no git work tree" in capsys.readouterr().err


def test_a_machine_without_git_is_told(
    base: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert main(["check", "--since", "HEAD"]) == 2
    assert "--since needs git, which cannot be run" in capsys.readouterr().err


def test_a_shallow_clone_is_told(
    base: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("leaf.py").write_text(MIDDLE + "# more\n")
    commit("second")
    git("clone", "-q", "--depth", "1", f"file://{tmp_path}", "copy")
    monkeypatch.chdir("copy")
    assert main(["check", "--since", base]) == 2
    assert "this clone is shallow: fetch the history" in capsys.readouterr().err


def test_histories_without_a_common_commit_are_told(base: str, capsys: pytest.CaptureFixture[str]) -> None:
    git("checkout", "-q", "--orphan", "other")
    commit("other")
    assert main(["check", "--since", "main"]) == 2
    assert "--since main: has no commit in common with HEAD" in capsys.readouterr().err
