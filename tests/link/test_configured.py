"""What a configuration says of functions, and what the comments and blocks of other projects waive."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from nosync_lint.report import Report

Lint = Callable[..., Report]

HEAD = "import torch\nimport ops\n"
STEP = "def step(x):  # nosync-lint: hot\n"


def reported(report: Report) -> list[str]:
    return [f"{finding.filename}:{finding.span.row} {finding.code}" for finding in report.findings]


SAID: dict[str, tuple[Mapping[str, tuple[str, ...]], str, list[str]]] = {
    "a function that waits": ({"waits": ("fence",)}, "def fence(): ...\n" + STEP + "    fence()\n", ["a.py:5 NSL401"]),
    "an external function that waits": ({"waits": ("ops.fence",)}, STEP + "    ops.fence()\n", ["a.py:4 NSL401"]),
    "a method that waits, called on an instance": (
        {"waits": ("Ring.drain",)},
        "class Ring:\n    def drain(self): ...\n" + STEP + "    Ring().drain()\n",
        ["a.py:6 NSL401"],
    ),
    "another function of that name": ({"waits": ("Ring.drain",)}, "def drain(): ...\n" + STEP + "    drain()\n", []),
    "an external function that gives back device tensors": (
        {"returns_device": ("ops.upload",)}, STEP + "    ops.upload(x).tolist()\n", ["a.py:4 NSL202"],
    ),
    "a function that gives back device tensors": (
        {"returns_device": ("upload",)}, "def upload(x): return x\n" + STEP + "    upload(x).tolist()\n", ["a.py:5 NSL202"],
    ),
    "a function that gives back host tensors": (
        {"returns_host": ("fetch",)},
        "def fetch(x): return x.to('cuda')\n" + STEP + "    fetch(torch.zeros(3, device='cuda')).tolist()\n",
        [],
    ),
    "a function that cures": (
        {"cures": ("upload",)}, "def upload(x): return torch.zeros(3).to('cuda')\n" + STEP + "    upload(x)\n", [],
    ),
    "a block that waives": (
        {"waivers": ("sync_is_fine",)},
        STEP + "    with ops.sync_is_fine():\n        helper()\ndef helper():\n    torch.cuda.synchronize()\n",
        [],
    ),
    "a block that waives, as known projects name it": (
        {}, STEP + "    with gpu_sync_allowed():\n        torch.cuda.synchronize()\n", [],
    ),
    "a comment that waives": ({}, STEP + "    torch.cuda.synchronize()  # gpu-sync-ok: once per epoch\n", []),
    "a comment without a reason": ({}, STEP + "    torch.cuda.synchronize()  # gpu-sync-ok:\n", ["a.py:4 NSL401"]),
}  # fmt: skip


@pytest.mark.parametrize("case", SAID)
def test_what_a_project_says_of_its_functions(lint: Lint, case: str) -> None:
    given, text, expected = SAID[case]
    assert reported(lint({"a.py": HEAD + text}, **given)) == expected


def test_a_configured_function_that_nothing_names_is_told(lint: Lint) -> None:
    config = 'waits = ["fence", "ops.fance"]\nreturns-device = ["uplod"]\n'
    report = lint({"nosync-lint.toml": config, "a.py": HEAD + STEP + "    ops.fence()\n"})
    assert reported(report) == ["a.py:4 NSL401", "nosync-lint.toml:1 NSL003", "nosync-lint.toml:2 NSL003"]
