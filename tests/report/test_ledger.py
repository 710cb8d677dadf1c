"""The ledger: every accepted finding with its reason, its owner and how often it runs."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest

from nosync_lint.cli import main
from nosync_lint.report import Report
from nosync_lint.report.ledger import write_ledger

PROGRAM = """
import torch

def step(t: torch.Tensor):  # nosync-lint: hot
    c = t.cuda()
    c.item()  # nosync-lint: ignore[NSL201] until=2030-01-01 owner=@kv a | b
    c.tolist()  # noqa: NSL202
    with allow_sync(reason="once a day"):
        c.cpu()

# nosync-lint: off[NSL101] while loading
def fill(t: torch.Tensor, rows: torch.LongTensor):
    t.cuda()[rows] = 1
"""


@pytest.fixture
def ledger(lint: Callable[..., Report]) -> Callable[[str], str]:
    report = lint(
        {"main.py": PROGRAM}, select=("NSL101", "NSL2"), heat="any", min_confidence="possible", today=date(2027, 3, 1)
    )

    def written(form: str) -> str:
        out = io.StringIO()
        write_ledger(report, out, form)
        return out.getvalue()

    return written


def test_text_tells_place_reason_owner_and_chain(ledger: Callable[[str], str]) -> None:
    assert ledger("text").splitlines() == [
        "main.py:6:5: NSL201 item-read [hot, likely] a | b",
        "    owner @kv, until 2030-01-01, by ignore in row 6",
        "    main.step: main.py:4 -> main.py:6",
        "main.py:7:5: NSL202 tolist-read [hot, likely] (no reason is given)",
        "    by noqa in row 7",
        "    main.step: main.py:4 -> main.py:7",
        "main.py:9:9: NSL203 host-copy [cold, likely] once a day",
        "    by block in row 8",
        "    main.step: main.py:4 -> main.py:9",
        "main.py:13:5: NSL101 scalar-index-write [unreached, likely] while loading",
        "    by off in row 11",
        "4 accepted findings: 1 cold, 2 hot, 1 unreached; 1 without a reason",
    ]


def test_markdown_is_a_table_whose_cells_stay_cells(ledger: Callable[[str], str]) -> None:
    lines = ledger("markdown").splitlines()
    assert lines[0] == "| place | rule | heat | reason | owner | until | by | chain |"
    assert lines[1] == "|---|---|---|---|---|---|---|---|"
    assert lines[2] == (
        "| `main.py:6:5` | NSL201 item-read | hot | a \\| b | @kv | 2030-01-01 | ignore in row 6 "
        "| main.step: main.py:4 -> main.py:6 |"
    )
    assert len(lines) == 8


def test_json_has_the_findings_in_the_words_of_the_report(ledger: Callable[[str], str]) -> None:
    data = json.loads(ledger("json"))
    first, second, block, region = data["waivers"]
    assert (first["form"], first["row"], first["owner"], first["until"]) == ("ignore", 6, "@kv", "2030-01-01")
    assert first["finding"]["code"] == "NSL201"
    assert [hop["row"] for hop in first["finding"]["flow"]] == [4, 6]
    assert (second["reason"], second["owner"], second["until"]) == ("", None, None)
    assert (block["form"], region["form"]) == ("block", "off")


def test_the_command_lists_the_baseline_and_fails_for_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("main.py").write_text(PROGRAM.replace("  # noqa: NSL202", ""))
    Path("nosync-lint.toml").write_text('baseline = "known.jsonl"\nselect = ["NSL202"]\n')
    entry = {
        "file": "main.py",
        "scope": "step",
        "code": "NSL202",
        "snippet": "c.tolist()",
        "reason": "old",
        "owner": "me",
    }
    Path("known.jsonl").write_text('{"nosync-lint-baseline": 1}\n' + json.dumps(entry) + "\n")
    assert main(["waivers", "-q", "-n", "-j", "1"]) == 0
    assert "NSL202 tolist-read [hot, likely] old\n    owner me, by baseline\n" in capsys.readouterr().out
    assert main(["waivers", "-q", "-n", "-j", "1", "--output-format", "markdown", "-o", "ledger.md"]) == 0
    assert "| old | me |" in Path("ledger.md").read_text()
    assert main(["waivers", "nowhere"]) == 2
