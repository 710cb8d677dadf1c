"""A report as one page for a browser: it needs nothing beside it, loads nothing, and works from a file.

The findings stand in the page as JSON in a data block, which no character of theirs can end. The script of the page
draws them, and puts what comes from the project into text nodes only. Should that ever fail, the policy of the page
still lets nothing run but this one script, by its hash. With one place to escape, a template language has no work here.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from importlib.resources import files
from typing import TextIO

from nosync_lint.report import Report
from nosync_lint.report.formats import Style
from nosync_lint.report.html.content import content


def write(report: Report, out: TextIO, style: Style) -> None:
    """Write a report as an HTML page. It is pure ASCII: every output can encode it."""
    css, script = _part("page.css"), _part("page.js")
    parts = {
        "policy": f"default-src 'none'; style-src {_hash(css)}; script-src {_hash(script)}; base-uri 'none'; "
        "form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
        "style": css,
        "script": script,
        "content": _block(content(report)),
    }
    out.write(re.sub(r"@(\w+)@", lambda met: parts[met[1]], _part("page.html")))


def _part(name: str) -> str:
    return files(__name__).joinpath(name).read_text(encoding="ascii")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode('ascii')).digest()).decode('ascii')}'"


def _block(value: object) -> str:
    """JSON in which HTML finds neither tags nor character references."""
    text = json.dumps(value, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
