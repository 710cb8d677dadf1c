"""What is built and installed: the listed packages, all their files, and nothing else."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest
from packaging.version import Version

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
MAPPED: dict[str, str] = PROJECT["tool"]["setuptools"]["package-dir"]
PACKAGES: list[str] = PROJECT["tool"]["setuptools"]["packages"]
DATA: dict[str, list[str]] = PROJECT["tool"]["setuptools"]["package-data"]
OURS = ("nosync_lint", "rules", "reference_allocator")
"""The folders of this repository that become import packages."""


def folder_of(package: str) -> Path:
    return ROOT / MAPPED.get(package, package.replace(".", "/"))


def files_on_disk() -> set[str]:
    """Every file that must be in the wheel, under its installed name: those of a package and of its data folders."""
    folders = {package: folder_of(package) for package in PACKAGES}
    found = [(package, path) for package, folder in folders.items() for path in folder.iterdir()]
    for package, patterns in DATA.items():
        trees = [folders[package] / pattern.removesuffix("/**") for pattern in patterns if pattern.endswith("/**")]
        found += [(package, path) for tree in trees for path in tree.rglob("*")]
    return {
        f"{package.replace('.', '/')}/{path.relative_to(folders[package]).as_posix()}"
        for package, path in found
        if path.is_file() and path.suffix != ".pyc"
    }


def test_the_package_list_names_every_folder() -> None:
    on_disk = set()
    for top in OURS:
        for path in (ROOT / top).rglob("*.py"):
            name = ".".join(path.parent.relative_to(ROOT).parts)
            on_disk.add(next((package for package, folder in MAPPED.items() if folder == name), name))
    assert sorted(PACKAGES) == sorted(on_disk)


def test_every_folder_of_the_list_exists() -> None:
    assert [package for package in PACKAGES if not (folder_of(package) / "__init__.py").is_file()] == []


def test_torch_is_no_requirement_of_the_linter() -> None:
    assert [line for line in PROJECT["project"]["dependencies"] if line.startswith("torch")] == []


def run(*command: str | Path, cwd: Path, **environment: str) -> str:
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd, env={**os.environ, **environment}, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with an sdist of this tree, and the wheel that was built from the sdist."""
    tree = tmp_path_factory.mktemp("tree") / "source"
    shutil.copytree(
        ROOT, tree, ignore=shutil.ignore_patterns(".*", "__pycache__", "*.egg-info", "build", "dist", "venv")
    )
    (tree / "dist").mkdir()
    wanted = Version("77") <= Version(importlib.metadata.version("setuptools"))
    run(sys.executable, "-m", "build", *["--no-isolation"] * wanted, "--outdir", tree / "dist", tree, cwd=tree)
    return tree / "dist"


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    (found,) = built.glob("*.whl")
    return found


def test_the_wheel_holds_every_file_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert names == files_on_disk()


def test_the_wheel_ships_no_rules_fixtures_or_tests_of_its_own(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        tops = {name.partition("/")[0] for name in archive.namelist() if ".dist-info/" not in name}
    assert tops <= {package.partition(".")[0] for package in PACKAGES}
    assert tops & {"rules", "fixtures", "tests", "docs", "benchmarks", "demo"} == set()


def test_the_sdist_holds_what_the_wheel_is_built_from(built: Path) -> None:
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"pyproject.toml", "README.md", "LICENSE", "rules/scalar_index_write.py"} <= names


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The scripts folder of a fresh environment with the wheel in it; what it requires is found in this one."""
    home = tmp_path_factory.mktemp("environment")
    venv.create(home, with_pip=True, symlinks=os.name != "nt")
    scripts = home / ("Scripts" if os.name == "nt" else "bin")
    run(scripts / "python", "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", wheel, cwd=home)
    (site,) = home.rglob("site-packages")
    (site / "requirements.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return scripts


def test_an_installed_wheel_finds_its_rules_and_models(installed: Path, tmp_path: Path) -> None:
    where = run(installed / "python", "-c", "import nosync_lint.rules as r; print(r.__file__)", cwd=tmp_path)
    assert Path(where.strip()).is_relative_to(installed.parent)
    listed = run(installed / "nosync-lint", "rule", "--all", cwd=tmp_path)
    assert len(listed.splitlines()) == len(list((ROOT / "rules").glob("*.py"))) - 1


def test_an_installed_wheel_lints(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "clean.py").write_text("x = 1\n")
    assert "0" in run(installed / "nosync-lint", "check", "--no-cache", ".", cwd=tmp_path)
    assert run(installed / "python", "-m", "nosync_lint", "version", cwd=tmp_path).startswith("nosync-lint ")


def test_a_bare_checkout_says_what_it_lacks(tmp_path: Path) -> None:
    """`rules/` is not importable as `nosync_lint.rules` before it is installed."""
    shutil.copytree(
        ROOT / "nosync_lint", tmp_path / "nosync_lint", ignore=shutil.ignore_patterns("__pycache__", "rules")
    )
    blocked = (
        "import sys; sys.path[:0] = ['.']; "
        "sys.meta_path = [f for f in sys.meta_path if 'editable' not in repr(f).lower()]; "
        "from nosync_lint.cli import main; sys.exit(main(['check', '.']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", blocked], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 2
    assert "pip install -e ." in done.stderr
    assert "Traceback" not in done.stderr
