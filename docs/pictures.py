"""Draws the pictures of docs/report.md from the demo: the page, in a headless Chromium, and the graph."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs" / "images"
sys.path.insert(0, str(ROOT))

from nosync_lint.cli import main  # noqa: E402
from tests.report.browser import found, opened  # noqa: E402

SHOWN = "#q=_return+page_owner"
SIZE = (1180, 1180)


def draw() -> int:
    programs = found()
    if programs is None:
        print("needs chromium and chromedriver", file=sys.stderr)
        return 2
    main(["graph", "demo", "--no-cache", "-q", "--output-format", "svg", "-o", str(IMAGES / "graph.svg")])
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        main(["check", "demo", "--no-cache", "-q", "--output-format", "html", "-o", str(page)])
        with opened(*programs, Path(folder) / "profile") as browser:
            browser.resize(*SIZE)
            browser.open(f"{page.as_uri()}{SHOWN}")
            browser.click(".chain summary")
            browser.run("document.activeElement.blur()")
            (IMAGES / "report.png").write_bytes(browser.picture())
    return 0


if __name__ == "__main__":
    sys.exit(draw())
