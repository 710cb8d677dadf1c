"""Several processes judge the sites of a program: what they find, and what happens where one of them fails."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from nosync_lint.link import sharing
from nosync_lint.link.solver import with_room

Link = Callable[..., Any]

TEXT = "".join(
    f"def f{n}(x: torch.Tensor):\n    t = torch.zeros({n + 1}, device='cuda')\n    t[0] = 1\n    return t.unique().tolist()\n"
    for n in range(9)
)


def found(linked: Any, jobs: int) -> list[Any]:
    program = linked.program
    syncs = with_room(lambda: sharing.waiting(program.judged, program.project.functions, jobs, lambda: None))
    return [(sync._replace(store=None), sync.store and sync.store.shape.parts) for sync in syncs]


@pytest.fixture(autouse=True)
def always_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharing, "SMALL_PROGRAM", 0)


@pytest.mark.parametrize("jobs", [2, 3, 16])
def test_the_number_of_processes_changes_nothing(link: Link, jobs: int) -> None:
    linked = link(TEXT)
    alone, together = found(linked, 1), found(linked, jobs)
    assert len(alone) == 27
    assert together == alone
    for (one, _), (other, _) in zip(alone, together, strict=True):
        assert one.site is other.site
        assert one.function is other.function


def test_where_a_process_fails_its_part_is_done_here(link: Link, monkeypatch: pytest.MonkeyPatch) -> None:
    linked = link(TEXT)
    alone = found(linked, 1)

    def broken(sync: object) -> object:
        raise RuntimeError("bang")

    monkeypatch.setattr(sharing, "_packed", broken)
    assert found(linked, 2) == alone


def test_a_program_without_functions_has_no_sites(link: Link) -> None:
    program = link("").program
    assert sharing.waiting(program.judged, [], 2, lambda: None) == ()
