"""The documentation as a site: it builds without a warning, every link leads somewhere, and it loads nothing from elsewhere."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

ROOT = Path(__file__).resolve().parent.parent
LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}
"""What a browser fetches by itself, by tag and attribute."""


class Parsed(HTMLParser):
    """The anchors of a page, its links, and what it loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = {""}
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag in LOADED and LOADED[tag] in given and given.get("rel") not in ("canonical", "next", "prev"):
            self.loaded.append(given[LOADED[tag]])


def build(root: Path, site: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(site)],
        cwd=root, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True, text=True, encoding="utf-8", timeout=300, check=False,
    )  # fmt: skip


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if importlib.util.find_spec("material") is None:
        pytest.skip("mkdocs-material is not installed: `pip install --group docs`")
    folder = tmp_path_factory.mktemp("site")
    done = build(ROOT, folder)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Parsed]:
    return {path: Parsed(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}


def test_the_site_begins_with_the_readme_and_has_a_page_for_every_document(site: Path) -> None:
    assert "nosync-lint check demo" in (site / "index.html").read_text(encoding="utf-8")
    documents = [path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")]
    assert [str(one) for one in documents if not (site / one.with_suffix(".html")).is_file()] == []


def test_every_link_leads_to_a_page_and_a_place_in_it(site: Path, pages: dict[Path, Parsed]) -> None:
    broken = []
    for path, page in pages.items():
        if path.name == "404.html":  # its links begin at the root of whatever it is served from
            continue
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            if not target.is_file() or (target in pages and unquote(parts.fragment) not in pages[target].anchors):
                broken.append(f"{path.relative_to(site)}: {link}")
    assert broken == []
    assert sum(len(page.links) for page in pages.values()) > 1000


def test_nothing_is_loaded_from_elsewhere(site: Path, pages: dict[Path, Parsed]) -> None:
    loaded = {url for page in pages.values() for url in page.loaded}
    assert len(loaded) > 3
    assert [url for url in sorted(loaded) if urlsplit(url).scheme not in ("", "data") or urlsplit(url).netloc] == []
    for path in site.rglob("*.css"):
        text = path.read_text(encoding="utf-8")
        assert re.findall(r"url\(\s*['\"]?(?:https?:)?//[^)]*\)|@import[^;]*", text) == [], path.name


def test_a_link_that_leads_nowhere_fails_the_build(site: Path, tmp_path: Path) -> None:
    for name in ("mkdocs.yml", "README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"):
        shutil.copy2(ROOT / name, tmp_path / name)
    for name in ("docs", "demo", "reference_allocator"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__", ".*", "rules"))
    shutil.copytree(ROOT / "docs" / "rules", tmp_path / "docs" / "rules")
    page = tmp_path / "docs" / "explain.md"
    page.write_text(page.read_text(encoding="utf-8") + "\n[a](nowhere.md) [b](guard.md#nowhere) [c](../rules/x.py)\n")
    done = build(tmp_path, tmp_path / "site")
    assert done.returncode == 1
    for link in ("nowhere.md", "guard.md#nowhere", "../rules/x.py"):
        assert f"'{link}'" in done.stderr
