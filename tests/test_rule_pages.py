"""Where a finding leads a reader: to the page of its rule, where the site of our documentation is known."""

from __future__ import annotations

import json
from collections.abc import Iterator
from email.message import Message
from pathlib import Path

import pytest

from nosync_lint import registry
from nosync_lint.cli import main

ROOT = Path(__file__).resolve().parent.parent
SITE = "https://docs.example.com/nosync"


@pytest.fixture
def published(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A distribution that says where its documentation is."""
    said = Message()
    said["Project-URL"] = "Source, https://example.com/source"
    said["Project-URL"] = f"Documentation, {SITE}/"
    monkeypatch.setattr(registry, "metadata", lambda name: said)
    registry._site.cache_clear()
    yield
    registry._site.cache_clear()


@pytest.mark.usefixtures("published")
def test_findings_and_rules_lead_to_the_page_of_the_rule(capsys: pytest.CaptureFixture[str]) -> None:
    main(["check", "--no-cache", "--output-format", "json", "demo"])
    findings = json.loads(capsys.readouterr().out)["findings"]
    assert {one["url"] for one in findings} == {f"{SITE}/rules/{one['name']}.html" for one in findings}
    main(["check", "--no-cache", "--output-format", "sarif", "demo"])
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    assert all(rule["helpUri"].startswith(f"{SITE}/rules/") for rule in run["tool"]["driver"]["rules"])
    main(["rule", "NSL101", "--output-format", "json"])
    assert json.loads(capsys.readouterr().out)["url"] == f"{SITE}/rules/scalar-index-write.html"


@pytest.mark.usefixtures("published")
def test_every_rule_has_such_a_page() -> None:
    pages = {path.stem for path in (ROOT / "docs" / "rules").glob("*.md")}
    assert {registry.page(rule) for rule in registry.rules()} == {
        f"{SITE}/rules/{stem}.html" for stem in pages - {"index"}
    }


def test_without_a_site_there_is_no_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "metadata", lambda name: Message())
    registry._site.cache_clear()
    assert {registry.page(rule) for rule in registry.rules()} == {""}
    registry._site.cache_clear()
