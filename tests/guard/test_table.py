"""The guard's table of operations: every name in it exists, and every wait that the linter knows is accounted for."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

from nosync_lint.guard.causes import Causes, UnknownRelease, release_of
from nosync_lint.guard.levels import Direction
from nosync_lint.guard.operations import conditions
from nosync_lint.guard.simulated import gradients
from nosync_lint.models import load
from nosync_lint.registry import rules

ROWS = {row["id"]: row for row in load("torch")["construct"]}
TABLE = load("dispatch")
GUARD = Path(conditions.__file__).parent.parent
IN_CODE = {word for path in GUARD.rglob("*.py") for word in re.findall(r"\"((?:d2h|exp)\.\w+)\"", path.read_text())}


def rows_of_the_table() -> set[str]:
    entries = [*TABLE["operation"], *TABLE["backward"]]
    return {entry["row"] for entry in entries} | {row for entry in entries for row in entry.get("inside", {}).values()}


def test_every_row_exists_and_waits() -> None:
    for row in rows_of_the_table() | IN_CODE | set(TABLE["rows"]["explicit"]) | set(TABLE["general"].values()):
        assert ROWS[row]["verdict"].startswith(("sync", "may-block")), row
        assert ROWS[row]["rule"], row


def test_every_operation_exists() -> None:
    causes = Causes(release_of(torch.__version__))
    for entry in TABLE["operation"]:
        for name in entry["names"] if causes.holds(entry["row"]) else ():
            packet, _, overload = name.partition(".")
            found = getattr(torch.ops.aten, packet)
            assert not overload or overload in found.overloads(), name


def test_every_condition_is_named_and_used() -> None:
    used = {entry["when"] for entry in TABLE["operation"] if "when" in entry}
    for name in used:
        assert conditions.named(name).__name__ == name
    assert used == set(conditions._CONDITIONS)
    assert {entry["when"] for entry in TABLE["backward"] if "when" in entry} == set(gradients._CONDITIONS)


def test_rules_of_tags_exist() -> None:
    slugs = {rule.slug() for rule in rules()}
    assert {tag["rule"] for tag in TABLE["tag"]} <= slugs
    assert {tag["name"] for tag in TABLE["tag"]} <= {str(tag).rpartition(".")[2] for tag in torch.Tag.__members__}


def test_every_wait_that_the_linter_knows_is_accounted_for() -> None:
    """Looked for, found by the name of the function that runs, reported as something more general, or said to be unseen."""
    calls = load("calls")
    named = {
        call[key]
        for call in (*calls["call"], *calls["copy"])
        for key in ("row", "upload", "download", "elements")
        if key in call
    }
    listed = [set(TABLE[key]) for key in ("general", "inside_torch", "unjudged")]
    for row, known in ROWS.items():
        if known["verdict"].startswith(("sync", "may-block")):
            places = [
                row in rows_of_the_table() | IN_CODE | {TABLE["rows"]["stand_in"]},
                *(row in one for one in listed),
            ]
            assert sum(places) == 1 or (not any(places) and row in named), row
    assert set().union(*listed) <= set(ROWS)
    for general, row in TABLE["general"].items():
        assert ROWS[general]["rule"] == ROWS[row]["rule"], general


@pytest.mark.parametrize(
    ("version", "release"),
    [("2.13.0+cpu", "2.13"), ("2.9.1", "2.9"), ("2.14.0a0+git", "2.14"), ("2.15.0+cu132", "2.15"), ("3.1.0", "2.15")],
)
def test_versions_count_as_releases(version: str, release: str) -> None:
    assert release_of(version) == release


def test_an_older_torch_is_refused() -> None:
    with pytest.raises(UnknownRelease, match=r"torch 2\.8\.1 is older than 2\.9"):
        release_of("2.8.1")


def test_the_table_is_that_of_the_running_release() -> None:
    before, after = Causes("2.13"), Causes("2.14")
    assert (before.holds("dyn.normal_tensor_std.le213"), after.holds("dyn.normal_tensor_std.le213")) == (True, False)
    assert not before.holds("read.cpu_mask.le28")
    cause = before.cause("d2h.item")
    assert (cause.code, cause.direction, cause.explicit, cause.hidden) == ("NSL201", Direction.D2H, True, False)
    assert before.cause("h2d.pageable_nb").hidden
