"""The torch releases a project is judged for."""

from __future__ import annotations

from pathlib import Path

import pytest

from nosync_lint.config import ConfigError
from nosync_lint.target import target_releases

RELEASES = ("2.9", "2.10", "2.11", "2.12", "2.13", "2.14", "2.15")

GIVEN = {
    "2.13": ("2.13",),
    "2.13.1": ("2.13",),
    "2.10": ("2.10",),
    "2.99": ("2.15",),
    "3.0": ("2.15",),
    ">=2.13": ("2.13", "2.14", "2.15"),
    ">=2.11,<2.13": ("2.11", "2.12"),
    "==2.12.*": ("2.12",),
    "==2.12.1": ("2.12",),
    "!=2.14.0,>=2.14": ("2.14", "2.15"),
    "~=2.14": ("2.14", "2.15"),
    ">2.13": ("2.13", "2.14", "2.15"),  # 2.13.1 is newer than 2.13
    ">=2.16": ("2.15",),  # newer than all that is known
}


@pytest.mark.parametrize("given", GIVEN)
def test_a_given_release_or_range_is_read(tmp_path: Path, given: str) -> None:
    assert target_releases(given, tmp_path, RELEASES).releases == GIVEN[given]


@pytest.mark.parametrize("given", ["1.13", "2.8", "<2.9", "newest", "torch>=2.9"])
def test_a_target_that_admits_nothing_known_is_an_error_that_names_it(tmp_path: Path, given: str) -> None:
    with pytest.raises(ConfigError, match=f"target torch `?{given}"):
        target_releases(given, tmp_path, RELEASES)


def project(tmp_path: Path, files: dict[str, str]) -> Path:
    """A repository with these files, so that nothing outside it is looked at."""
    root = tmp_path / "repository"
    (root / ".git").mkdir(parents=True)
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


STATED = {
    "pyproject": {"pyproject.toml": "[project]\ndependencies = ['numpy', 'torch>=2.12,<2.14']\n"},
    "an extra": {
        "pyproject.toml": "[project.optional-dependencies]\ngpu = ['torch >=2.12,<2.14 ; os_name == \"posix\"']\n"
    },
    "setup.cfg": {"setup.cfg": "[options]\ninstall_requires =\n    numpy\n    torch>=2.12,<2.14\n"},
    "requirements": {"requirements.txt": "# runtime\n-r other.txt\ntorch >=2.12, <2.14  # tested\n"},
    "a requirements folder": {"requirements/cuda.txt": "torch>=2.12,<2.14\n"},
    "another spelling": {"requirements.txt": "Torch[opt-einsum]>=2.12,<2.14\n"},
    "the nearest statement": {
        "pyproject.toml": "[project]\ndependencies = ['torch>=2.12,<2.14']\n",
        "requirements.txt": "torch==2.15.0\n",
    },
    "one that admits something": {
        "pyproject.toml": "[project]\ndependencies = ['torch<2']\n",
        "requirements.txt": "torch>=2.12,<2.14",
    },
    "one with a version": {
        "pyproject.toml": "[project]\ndependencies = ['torch']\n",
        "requirements.txt": "torch>=2.12,<2.14",
    },
    "beside damaged files": {
        "pyproject.toml": "[project",
        "setup.cfg": "options",
        "requirements.txt": "torch>=2.12,<2.14",
    },
}


@pytest.mark.parametrize("files", STATED.values(), ids=STATED.keys())
def test_the_projects_own_requirement_is_found(tmp_path: Path, files: dict[str, str]) -> None:
    assert target_releases("", project(tmp_path, files), RELEASES).releases == ("2.12", "2.13")


def test_a_requirement_is_found_above_a_package_folder(tmp_path: Path) -> None:
    root = project(tmp_path, {"requirements.txt": "torch==2.14.*", "pkg/sub/a.py": ""})
    assert target_releases("", root / "pkg" / "sub", RELEASES).releases == ("2.14",)


def test_nothing_above_the_repository_is_read(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("torch==2.14.*")
    assert target_releases("", project(tmp_path, {}), RELEASES).releases == RELEASES


def test_the_metadata_beside_an_unpacked_package_is_read(tmp_path: Path) -> None:
    root = project(
        tmp_path,
        {
            "my_server/a.py": "",
            "my_server-0.5.dist-info/METADATA": "Requires-Dist: torch==2.13.0\n\nRequires-Dist: torch==2.9\n",
            "other-1.0.dist-info/METADATA": "Requires-Dist: torch==2.14.0\n",
        },
    )
    assert target_releases("", root / "my_server", RELEASES).releases == ("2.13",)


@pytest.mark.parametrize(
    "line", ["torch", "torchvision==0.20", "torch @ https://example.com/torch.whl", "torch<1", "torch==bogus"]
)
def test_without_a_usable_requirement_every_known_release_counts(tmp_path: Path, line: str) -> None:
    assert target_releases("", project(tmp_path, {"requirements.txt": line}), RELEASES).releases == RELEASES


@pytest.mark.parametrize("given", ["3.0", "2.99.1", ">=2.16", ">=9"])
def test_a_target_beyond_what_is_known_is_told(tmp_path: Path, given: str) -> None:
    told = f"torch{'' if given.startswith('>') else ' '}{given} is newer than 2.15, the newest release that is known, "
    assert target_releases(given, tmp_path, RELEASES) == (("2.15",), f"{told}as which it is judged")
    if given.startswith(">"):
        root = project(tmp_path, {"requirements.txt": f"torch{given}"})
        assert target_releases("", root, RELEASES).note == f"{told}as which it is judged"


@pytest.mark.parametrize("given", ["2.13", "2.15", ">=2.9", ">=2.14", "==2.15.*"])
def test_nothing_is_told_of_a_target_that_is_known(tmp_path: Path, given: str) -> None:
    assert target_releases(given, tmp_path, RELEASES).note == ""


@pytest.mark.parametrize("line", ["torch<2.0", "torch == bogus", "torch==1.13.1; sys_platform == 'linux'"])
def test_a_requirement_that_admits_nothing_known_is_told(tmp_path: Path, line: str) -> None:
    found = target_releases("", project(tmp_path, {"requirements.txt": line}), RELEASES)
    asked = line.partition(";")[0].removeprefix("torch").strip()
    assert found.releases == RELEASES
    assert found.note == (
        f"the project requires torch{asked}, which admits no release of 2.9 to 2.15, for which the project is judged: "
        "set `target-torch` to another one"
    )


@pytest.mark.parametrize("line", ["torch", "torchvision==bogus", "torch @ https://example.com/torch.whl", "# torch<2"])
def test_a_line_that_asks_nothing_of_torch_is_not_told(tmp_path: Path, line: str) -> None:
    assert target_releases("", project(tmp_path, {"requirements.txt": line}), RELEASES).note == ""
