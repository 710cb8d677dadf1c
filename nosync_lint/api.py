"""Linting from Python: what `import nosync_lint` offers."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from nosync_lint.config import Settings, load_config, project_config
from nosync_lint.pipeline import run
from nosync_lint.report import Report
from nosync_lint.source import encode, is_python

Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]
"""One path, or several."""


def check(
    paths: Paths = ".",
    *,
    settings: Settings | None = None,
    overlay: Mapping[str | os.PathLike[str], str | bytes] | None = None,
    jobs: int = 0,
    cache: bool = True,
) -> Report:
    """Lint files and folders, as `nosync-lint check` does.

    The whole project is linked, and the given paths are reported. `settings` default to those of the configuration
    that the command would find. `overlay` holds source code that stands for files on disk, by their paths, whether they
    exist or not. `jobs` are worker processes, by default one per processor; without `cache` the index cache is neither
    read nor written. Names of files in the report are relative to the working directory.

    What is wrong with the linted files, and rules that crash, are part of the report. Raises `MissingPath` for a path
    that does not exist, `ConfigError` for a configuration that cannot be used, and `RulesMissing` where the rules, or
    those of a plugin, cannot be loaded. Runs of one process must not overlap: they change its recursion limit.
    """
    named = _listed(paths)
    sources = {}
    for name, text in (overlay or {}).items():
        path = Path(name).resolve()
        sources[path] = encode(text, is_python(path)) if isinstance(text, str) else text
    return run(named, settings_for(named) if settings is None else settings, jobs=jobs, cache=cache, overlay=sources)


def settings_for(paths: Paths = ".") -> Settings:
    """The settings of the configuration nearest to the given paths, or the defaults where there is none.

    They are a frozen dataclass: `dataclasses.replace(settings, heat="any")` changes one. Raises `ConfigError`.
    """
    path = project_config(_listed(paths))
    return Settings() if path is None else load_config(path)


def _listed(paths: Paths) -> list[str]:
    return [os.fspath(path) for path in ([paths] if isinstance(paths, str | os.PathLike) else paths)]
