"""What mkdocs does not do by itself: pages that stand outside `docs/`, with their links, and all rules in the menu."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
ELSEWHERE = (
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "demo/README.md",
    "reference_allocator/README.md",
    "reference_allocator/kernels/README.md",
)
"""Pages of the repository that are no files of `docs/`. They keep their paths; the others lose `docs/`."""
_LINK = re.compile(r"(?<=\]\()(?![a-z]+:)([^)#\s]+)(?=[)#])")
_RULE = re.compile(r"\[([\w-]+)\]\(([\w-]+\.md)\)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the pages of the rules below their index, in its order."""
    listed = _RULE.findall((ROOT / "docs" / "rules" / "index.md").read_text(encoding="utf-8"))
    rules = [{slug: f"rules/{name}"} for slug, name in listed]
    config.nav = [
        {"Rules": ["rules/index.md", *rules]} if entry == {"Rules": "rules/index.md"} else entry
        for entry in config.nav or ()
    ]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that stand elsewhere."""
    for name in ELSEWHERE:
        files.append(File.generated(config, name, content=(ROOT / name).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Let links between both kinds of pages lead to where the site has them."""
    here = page.file.src_uri
    folder = posixpath.dirname(here if here in ELSEWHERE else f"docs/{here}")

    def led(found: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(folder, found[1]))
        if target in ELSEWHERE or target.startswith("docs/"):
            return posixpath.relpath(target.removeprefix("docs/"), posixpath.dirname(here) or ".")
        return found[1]  # no page: mkdocs will say so

    return _LINK.sub(led, markdown)
