"""Which torch releases a project may run on: from the flag, the configuration, or the project's own requirement."""

from __future__ import annotations

import configparser
import re
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet

from nosync_lint.config import ConfigError

PACKAGE = "torch"
RELEASE = r"\d+\.\d+(\.\d+)*"
_UNREADABLE = re.compile(rf"{PACKAGE}\s*([<>=!~].*)", re.I)
_PATCHES = 10
_FUTURE = "999.0"


class TargetReleases(NamedTuple):
    """The releases to judge for, and what a reader must know of them."""

    releases: tuple[str, ...]
    note: str = ""


def target_releases(given: str, root: Path, releases: Sequence[str]) -> TargetReleases:
    """The releases (`X.Y`) of the model that `given` (a release or a specifier) or the project's requirement admits.

    Without either, or where a requirement admits no known release, all of them. Raises `ConfigError` for a `given`
    that cannot be read or admits nothing known.
    """
    if given:
        found = _given(given, releases)
        return TargetReleases(found, _beyond(given, releases) if _is_newer(given, releases) else "")
    stated = list(_requirements(root))
    for text in stated:
        admitted = _admitted(text, releases)
        if admitted:
            return TargetReleases(admitted, _beyond(text, releases) if _is_newer(text, releases) else "")
    if not stated:
        return TargetReleases(tuple(releases))
    known = f"{releases[0]} to {releases[-1]}, for which the project is judged"
    return TargetReleases(
        tuple(releases),
        f"the project requires torch{stated[0]}, which admits no release of {known}: set `target-torch` to another one",
    )


def _is_newer(text: str, releases: Sequence[str]) -> bool:
    """Whether a release or a specifier admits only what is newer than all that is known."""
    if re.fullmatch(RELEASE, text):
        return _key(".".join(text.split(".")[:2])) > _key(releases[-1])
    return not _within(SpecifierSet(text, prereleases=True), releases)


def _beyond(text: str, releases: Sequence[str]) -> str:
    asked = f"torch {text}" if text[0].isdigit() else f"torch{text}"
    return f"{asked} is newer than {releases[-1]}, the newest release that is known, as which it is judged"


def stated_requirement(root: Path, releases: Sequence[str]) -> str:
    """What a project itself requires of torch, where that says something of the releases of the model; else nothing."""
    return next((text for text in _requirements(root) if _admitted(text, releases)), "")


def _given(given: str, releases: Sequence[str]) -> tuple[str, ...]:
    if re.fullmatch(RELEASE, given):
        release = ".".join(given.split(".")[:2])
        if release in releases:
            return (release,)
        newest, oldest = releases[-1], releases[0]
        if _key(release) > _key(newest):
            return (newest,)  # nothing is known of it yet: judged as the newest release that is known
        raise ConfigError(f"target torch {given} is older than the oldest release the model knows ({oldest})")
    admitted = _admitted(given, releases)
    if not admitted:
        raise ConfigError(f"target torch `{given}` is no release or range of {releases[0]} to {releases[-1]}")
    return admitted


def _key(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in release.split("."))


def _admitted(text: str, releases: Sequence[str]) -> tuple[str, ...]:
    try:
        specifier = SpecifierSet(text, prereleases=True)
    except InvalidSpecifier:
        return ()
    if not text:
        return ()
    admitted = _within(specifier, releases)
    if not admitted and specifier.contains(_FUTURE):
        return (releases[-1],)  # newer than all that is known: judged as the newest that is
    return admitted


def _within(specifier: SpecifierSet, releases: Sequence[str]) -> tuple[str, ...]:
    return tuple(one for one in releases if any(specifier.contains(f"{one}.{patch}") for patch in range(_PATCHES)))


def _requirements(root: Path) -> Iterator[str]:
    """The specifiers for torch that the project states, nearest statement first."""
    for folder in (root, *list(root.parents)[:3]):
        for lines in (_pyproject(folder), _setup_cfg(folder), _requirement_files(folder), _metadata(folder, root.name)):
            for line in lines:
                specifier = _specifier(line)
                if specifier:
                    yield specifier
        if (folder / ".git").exists():
            return


def _specifier(line: str) -> str:
    """What a line asks of torch, also where that is no version; empty where it is about something else."""
    text = line.partition("#")[0].strip()
    try:
        requirement = Requirement(text)
    except InvalidRequirement:
        found = _UNREADABLE.fullmatch(text.partition(";")[0].strip())
        return found[1] if found is not None else ""
    return str(requirement.specifier) if requirement.name.lower() == PACKAGE else ""


def _pyproject(folder: Path) -> list[str]:
    try:
        data = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        return []
    project = data.get("project")
    if not isinstance(project, dict):
        return []
    extras = project.get("optional-dependencies")
    groups = [project.get("dependencies"), *(extras.values() if isinstance(extras, dict) else ())]
    return [line for group in groups if isinstance(group, list) for line in group if isinstance(line, str)]


def _setup_cfg(folder: Path) -> list[str]:
    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read(folder / "setup.cfg", encoding="utf-8")
        return parser.get("options", "install_requires", fallback="").splitlines()
    except (configparser.Error, UnicodeDecodeError):
        return []


def _requirement_files(folder: Path) -> list[str]:
    lines: list[str] = []
    for path in sorted([*folder.glob("requirements*.txt"), *folder.glob("requirements/*.txt")]):
        try:
            lines += path.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError):
            continue
    return lines


def _metadata(folder: Path, package: str) -> list[str]:
    """`Requires-Dist` lines of the distribution that a package folder was unpacked from."""
    lines: list[str] = []
    for path in sorted(folder.glob("*.dist-info/METADATA")):
        if path.parent.name.partition("-")[0].lower().replace("_", "-") != package.lower().replace("_", "-"):
            continue
        try:
            text = path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        head = text.partition("\n\n")[0]
        lines += [line.partition(":")[2].strip() for line in head.splitlines() if line.startswith("Requires-Dist:")]
    return lines
