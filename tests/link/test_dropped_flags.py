"""Which functions take the flag of a copy and forget it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from nosync_lint.link.dropped_flags import DroppedFlags
from nosync_lint.link.solver import with_room
from nosync_lint.link.wording import wording

Link = Callable[..., Any]

COPIES = {
    "to": ("x.to(device)", True),
    "copy_": ("x.copy_(y)", True),
    "by keyword": ("x.copy_(src=y)", True),
    "told to wait": ("x.to(device, non_blocking=False)", False),
    "told not to wait": ("x.to(device, non_blocking=True)", False),
    "told by position": ("x.copy_(y, True)", False),
    "handed on": ("x.to(device, non_blocking=non_blocking)", False),
    "read for something else": ("print(non_blocking, x.to(device))", False),
    "to a place of its own": ('x.to("cuda")', False),
    "of no tensor": ("device.to(device)", False),
    "no copy": ("x.view(device)", False),
}


def dropped(linked: Any) -> list[str]:
    program = linked.program
    found = with_room(lambda: list(DroppedFlags(program.project, program.inference)))
    return [wording(one.copy.call) for one in found]


@pytest.mark.parametrize(("copy", "found"), COPIES.values(), ids=COPIES.keys())
def test_a_copy_is_made_without_the_flag_that_was_asked_for(link: Link, copy: str, found: bool) -> None:
    text = f"""
    def move(x: torch.Tensor, y: torch.Tensor, device, non_blocking=False):
        return {copy}
    def f(a: torch.Tensor, b: torch.Tensor, device):
        move(a, b, device, non_blocking=True)
    """
    assert dropped(link(text)) == ([copy] if found else [])


@pytest.mark.parametrize("given", ["non_blocking=False", "non_blocking=wanted", "**words", ""])
def test_nothing_is_lost_where_the_flag_is_not_set(link: Link, given: str) -> None:
    text = f"""
    def move(x: torch.Tensor, device, non_blocking=False): return x.to(device)
    def f(a: torch.Tensor, device, wanted, words): move(a, device, {given})
    """
    assert dropped(link(text)) == []
