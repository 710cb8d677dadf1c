"""Names of files for services that know the repository and not the working directory."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote


class Repository:
    """The folder that git manages around the working directory, or that one where there is none."""

    def __init__(self) -> None:
        here = Path.cwd()
        self.root = next((folder for folder in (here, *here.parents) if (folder / ".git").exists()), here)
        self._names: dict[str, str] = {}

    def name(self, filename: str) -> str:
        """A file by its name in the repository, with `/`. One that lies outside keeps its full path."""
        if filename not in self._names:
            path = Path(os.path.abspath(filename))
            inside = path.is_relative_to(self.root)
            self._names[filename] = (path.relative_to(self.root) if inside else path).as_posix()
        return self._names[filename]

    def is_inside(self, filename: str) -> bool:
        return not os.path.isabs(self.name(filename))

    def uri(self, filename: str) -> str:
        """A file as a URI: relative to the repository, or absolute for one that lies outside."""
        name = quote(os.fsencode(self.name(filename)))
        return name if self.is_inside(filename) else f"file://{name if name.startswith('/') else '/' + name}"

    @property
    def root_uri(self) -> str:
        return f"file://{quote(os.fsencode(self.root.as_posix())).rstrip('/')}/"
