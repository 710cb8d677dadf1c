"""Random nestings of guards and permissions, errors through them included, beside a model in plain Python."""

from __future__ import annotations

from typing import Any

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nosync_lint.guard import GuardReport, Level, SyncError, allow_sync, guard
from nosync_lint.guard.scopes import _open

SCOPES = st.one_of(
    st.tuples(st.just("guard"), st.sampled_from([*Level]), st.integers(0, 2)),
    st.tuples(st.just("allow"), st.none(), st.none() | st.integers(0, 2)),
)
LEAVES = st.sampled_from(["implicit", "explicit", "hidden", "raise"])
NESTS = st.recursive(LEAVES, lambda inner: st.tuples(SCOPES, st.lists(inner, max_size=4)), max_leaves=14)


class Escaped(Exception):
    """Leaves the scope that it is raised in, and no other."""


def modelled(tree: Any, scopes: list[list[Any]], words: list[str]) -> None:
    """Appends what becomes of the waits."""
    if tree == "raise":
        raise Escaped
    if isinstance(tree, str):
        words.append(judged(tree, scopes))
        return
    scope, inside = tree
    inner = [*scopes, list(scope)]
    try:
        for one in inside:
            modelled(one, inner, words)
    except Escaped:
        words.append("escaped")


def judged(wait: str, scopes: list[list[Any]]) -> str:
    """The innermost scope that has something left to say decides."""
    for scope in reversed(scopes):
        kind, level, left = scope
        if kind == "allow":
            if wait == "hidden" or left is None:
                return "allowed"
            if left > 0:
                scope[2] -= 1
                return "allowed"
            continue
        if wait == "hidden" or level not in ("disallow", "disallow_explicit"):
            return "recorded"
        if wait == "explicit" and level == "disallow":
            return "recorded"
        scope[2] -= 1
        return "recorded" if left > 0 else "refused"
    return "recorded"


def wait_for(kind: str) -> None:
    """One wait of this kind."""
    if kind == "implicit":
        torch.zeros(3, device="cuda")[0] = 1.0
    elif kind == "explicit":
        torch.zeros(3, device="cuda").cpu()
    else:
        torch.zeros(3).to("cuda", non_blocking=True)


def played(tree: Any, report: GuardReport, words: list[str]) -> None:
    """The same under real guards."""
    if tree == "raise":
        raise Escaped
    if isinstance(tree, str):
        try:
            wait_for(tree)
        except SyncError:
            words.append("refused")
        else:
            words.append("allowed" if report.events[-1].allowed else "recorded")
        return
    (kind, level, left), inside = tree
    before = _open.get()
    try:
        with guard(level=level, max_syncs=left) if kind == "guard" else allow_sync(reason="meant", max_syncs=left):
            for one in inside:
                played(one, report, words)
    except Escaped:
        words.append("escaped")
    assert _open.get() is before


@settings(max_examples=200, deadline=None)
@given(st.lists(NESTS.filter(lambda tree: tree != "raise"), max_size=3))
def test_nested_scopes_do_as_the_model_says(trees: list[Any]) -> None:
    expected: list[str] = []
    found: list[str] = []
    for tree in trees:
        modelled(tree, [], expected)
    with guard(level="allow") as report:
        for tree in trees:
            played(tree, report, found)
    assert found == expected
    assert len(report.events) == len([word for word in found if word != "escaped"])
    assert not torch.cuda.is_available()
    assert torch._C._len_torch_dispatch_stack() == 0
