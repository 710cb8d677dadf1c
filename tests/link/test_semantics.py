"""Which index writes and calls synchronise, and in which releases of torch."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from nosync_lint.link.call_models import CallModels
from nosync_lint.link.semantics import Semantics, known_releases
from nosync_lint.registry import rules

Link = Callable[..., Any]

SETUP = """
def write(s: int, i: int, j: int, device):
    t = torch.zeros(8, device="cuda")
    t2 = torch.zeros(8, 8, device="cuda")
    t0 = torch.zeros((), device="cuda")
    h = torch.zeros(8)
    given = torch.zeros(8, device=device)
    idx = torch.arange(4, device="cuda")
    idx2 = torch.arange(4, device="cuda")
    i0 = torch.tensor(3, device="cuda")
    mask = torch.zeros(8, dtype=torch.bool, device="cuda")
    host_mask = torch.zeros(8, dtype=torch.bool)
    h0 = torch.tensor(3)
    v0 = torch.tensor(1.0)
    v = torch.zeros(4, device="cuda")
    d0 = torch.zeros((), device="cuda")
    {}
"""
SCALAR, INT, HOST0D, HOST0D_INT, INDEX0D, HOST_MASK = (
    "write.cuda_idx.pyscalar.le214", "write.int_full.pyscalar.le214", "write.cuda_idx.cpu0d", "write.basic_0d.cpu0d",
    "write.cuda0d_idx.scalar.le214", "write.cpu_mask.pyscalar.le214",
)  # fmt: skip

WAITS = {
    "t[idx] = -1": SCALAR,
    "t[idx] = s": SCALAR,
    "t[idx] = 0.5": SCALAR,
    "t[idx] = True": SCALAR,
    "t2[:, idx] = 0": SCALAR,
    "t2[idx, :] = 0": SCALAR,
    "t2[i, idx] = 0": SCALAR,
    "t2[idx, idx2] = 0": SCALAR,
    "t2[..., idx] = 0": SCALAR,
    "t[idx + 1] = -1": SCALAR,
    "t[[1, 2]] = -1": SCALAR,
    "given[idx] = -1": SCALAR,
    "t[i] = -1": INT,
    "t[0] = s": INT,
    "t[-1] = 0": INT,
    "t2[i, j] = 0": INT,
    "t2[i][j] = 0": INT,
    "t2[0, -1] = 0.0": INT,
    "t[idx] = v0": HOST0D,
    "t[idx] = torch.tensor(-1)": HOST0D,
    "t2[:, idx] = v0": HOST0D,
    "t[i] = v0": HOST0D_INT,
    "t2[i, j] = torch.tensor(0.0)": HOST0D_INT,
    "t[i0] = -1": INDEX0D,
    "t2[i, i0] = 0": INDEX0D,
    "t[h0] = -1": INT,
    "t2[h0, j] = v0": HOST0D_INT,
    "t[host_mask] = -1": HOST_MASK,
    "t2[:, host_mask] = 0": HOST_MASK,
    "t[host_mask] = v0": "write.cpu_mask.cpu0d",
}
ENDS_WITH_2_14 = {SCALAR, INT, INDEX0D, HOST_MASK}


def stores(linked: Any) -> list[Any]:
    """The stores of a scalar that wait."""
    return [sync for sync in linked.program.syncs if sync.verdict.rule == "scalar-index-write"]


@pytest.mark.parametrize("statement", WAITS)
def test_a_store_waits_by_a_row_of_the_model(link: Link, statement: str) -> None:
    linked = link(SETUP.format(statement))
    (site,) = stores(linked)
    row = WAITS[statement]
    assert site.verdict.row == row
    assert ("2.14" in site.verdict.releases, "2.15" in site.verdict.releases) == (True, row not in ENDS_WITH_2_14)


@pytest.mark.parametrize("statement", WAITS)
def test_a_store_is_judged_for_the_targeted_release(link: Link, statement: str) -> None:
    def synchronises(release: str) -> bool:
        return bool(stores(link(SETUP.format(statement), targets=(release,))))

    assert synchronises("2.14")
    assert synchronises("2.9")
    assert synchronises("2.15") == (WAITS[statement] not in ENDS_WITH_2_14)


SILENT = [
    "t[:] = -1", "t[1:3] = -1", "t[...] = -1", "t2[:, 0] = -1", "t2[0] = -1", "t2[i] = s", "t2[i, 1:] = 0",
    "t[None] = 0", "t[mask] = -1", "t2[:, mask] = -1", "t[t > 0] = 0", "t[mask] = v0",
    "t[i:i + 1] = -1", "t2[..., j] = 0",
    "t[idx] = v", "t[idx] = d0", "t[i] = d0", "t[:] = v0", "t2[i] = v0", "t0 = -1",
    "t[idx] += 1", "t[i] += 1", "t[1:] *= 2", "t2[h0] = -1", "t[[True, False]] = -1", "t2[idx, idx2] -= s",
    "h[i] = -1", "h[[1, 2]] = -1", "h[0] = v0",
    "t.index_fill_(0, idx, -1)", "t[i].fill_(-1)", "t.fill_(0)",
    "[1, 2][i] = 3", "{}.get(i)", "x = {}; x[i] = -1", "x = [0]; x[i] = -1",
]  # fmt: skip


@pytest.mark.parametrize("statement", SILENT)
def test_a_store_that_does_not_wait(link: Link, statement: str) -> None:
    assert stores(link(SETUP.replace("{}", statement))) == []


CONFIDENCE = {
    "t[idx] = -1": "certain",
    "t[i] = -1": "certain",
    "given[idx] = -1": "likely",
    "given[i] = -1": "likely",
    "t[[1, 2]] = -1": "likely",
    "t[mystery()] = -1": "possible",
    "t[some_index] = -1": "likely",
    "t.reshape(mystery)[0] = -1": "possible",
}


@pytest.mark.parametrize("statement", CONFIDENCE)
def test_confidence_is_what_the_evidence_allows(link: Link, statement: str) -> None:
    (site,) = stores(link(SETUP.format(statement)))
    assert site.verdict.confidence.value == CONFIDENCE[statement]


def test_a_device_index_tells_that_its_target_is_on_the_device(link: Link) -> None:
    text = """
def _f(table: torch.Tensor, rows: torch.Tensor):
    table[torch.arange(3).cuda()] = -1
    table[torch.arange(3)] = -1
    table[rows] = -1
"""
    assert [site.verdict.confidence.value for site in stores(link(text))] == ["likely", "possible", "possible"]


NARROWED = {
    "t.is_cuda": ["likely", "likely"],
    "not t.is_cuda": [None, "likely"],
    "t.device.type == 'cpu'": [None, "likely"],
    "t.device.type != 'cpu'": ["likely", "likely"],
}


@pytest.mark.parametrize("test", NARROWED)
def test_a_test_of_the_device_says_where_a_tensor_lives(link: Link, test: str) -> None:
    text = f"""
def f(dev, rows: torch.LongTensor):
    t = torch.zeros(8, device=dev)
    if {test}:
        t[rows] = 1
    t[rows] = 2
"""
    stored = {site.store.value.ref: site.verdict.confidence.value for site in stores(link(text))}
    assert [stored.get(1), stored.get(2)] == NARROWED[test]


def test_a_starred_name_holds_what_is_left(link: Link) -> None:
    text = """
def f(rows: torch.LongTensor):
    first, *rest = [torch.zeros(3, 3).cuda(), torch.zeros(3, 3).cuda()]
    rest[0][1] = 1
    rest[0][1][2] = 2
"""
    assert [site.store.value.ref for site in stores(link(text))] == [2]


def test_a_factory_under_a_device_lives_there(link: Link) -> None:
    text = """
def f(rows: torch.LongTensor):
    with torch.device("cuda"):
        t = torch.zeros(8)
    t[rows] = 1
    h = torch.zeros(8)
    h[rows] = 2
"""
    assert [site.store.value.ref for site in stores(link(text))] == [1]


def test_a_missing_rank_is_said(link: Link) -> None:
    (site,) = stores(link(SETUP.format("t.reshape(mystery)[0] = -1")))
    assert "the rank is not known" in site.verdict.because


CALLS = {
    "torch.unique(idx)": True,
    "idx.unique()": True,
    "idx.unique(dim=0)": True,
    "torch.unique_consecutive(idx, return_counts=True)": True,
    "torch.unique(h)": False,
    "torch.sort(idx)": False,
    "idx.tolist": False,
    "[1, 2].unique()": False,
}


@pytest.mark.parametrize("call", CALLS)
def test_a_call_is_known_by_name_and_operand(link: Link, call: str) -> None:
    found = [sync for sync in link(SETUP.format(call)).program.syncs if sync.verdict.rule == "dedup-on-device"]
    assert len(found) == CALLS[call]
    assert all(sync.sink for sync in found)


def test_a_dimension_makes_another_row_of_a_call(link: Link) -> None:
    rows = [
        link(SETUP.format(f"t2.unique({given})")).program.syncs[-1].verdict.row for given in ("", "dim=0", "dim=None")
    ]
    assert rows[0] == rows[2] != rows[1]


def test_a_cure_is_about_the_operand(link: Link) -> None:
    program = link(SETUP.format("torch.bincount(idx + 1)")).program
    (sync,) = (sync for sync in program.syncs if sync.verdict.rule == "counted-shape")
    assert "device=(idx + 1).device).scatter_add_(0, idx + 1, torch.ones_like(idx + 1))" in program.cure(sync)


@pytest.mark.parametrize(
    ("group", "confidences"),
    [("", ["likely"]), ("self.device_group", ["likely"]), ("group", ["possible"]), ("self.cpu_group", [])],
)
def test_a_process_group_tells_by_its_name_where_it_works(link: Link, group: str, confidences: list[str]) -> None:
    text = f"import torch.distributed as dist\n\n\ndef meet(self, group):\n    dist.barrier({group})\n"
    assert [sync.verdict.confidence.value for sync in link(text).program.syncs] == confidences


def test_the_releases_are_in_order_and_begin_where_design_says() -> None:
    numbers = [tuple(map(int, release.split("."))) for release in known_releases()]
    assert numbers == sorted(numbers)
    assert numbers[0] == (2, 9)


def test_a_row_holds_from_its_first_to_before_its_last_release() -> None:
    semantics = Semantics()
    for row in semantics.rows.values():
        since, until = row.get("since") or "0", row.get("until") or "99"
        assert semantics.active(row["id"]) == tuple(
            release for release in known_releases() if _number(since) <= _number(release) < _number(until)
        )


def test_the_bounds_of_every_row_are_releases() -> None:
    bounds = {row.get(key) or "0.0" for row in Semantics().rows.values() for key in ("since", "until")}
    assert [bound for bound in bounds if not re.fullmatch(r"\d+\.\d+", bound)] == []


def _number(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".") if part)


def test_every_row_has_a_verdict_and_a_source() -> None:
    rows = Semantics().rows.values()
    assert len(rows) > 100
    for row in rows:
        assert row["verdict"] in {
            "sync-d2h", "sync-h2d", "sync-explicit", "sync-if", "may-block", "no-sync", "same-as-int", "error-not-sync",
        }, row["id"]  # fmt: skip
        assert row["evidence"], row["id"]
        assert row["confidence"], row["id"]


def test_calls_name_rows_that_a_rule_reports() -> None:
    rows = Semantics().rows
    assert [row for row in CallModels().rows() if "rule" not in rows[row]] == []


def test_every_reported_row_has_a_rule_of_the_catalogue() -> None:
    slugs = {rule.slug() for rule in rules()}
    named = {row["rule"] for row in Semantics().rows.values() if "rule" in row}
    assert named <= slugs
