"""The items of an index, classified: they decide whether a read or write of a tensor synchronises."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from nosync_lint.index.records import Expr
from nosync_lint.link.values import HOST, Value


class IndexShape:
    """The classified items of an index: (kind, value) pairs, where kind is int, slice, device-slice (its value is a
    bound on the device), ellipsis, none, bool, mask, tensor (integers), any-tensor (dtype not known), integers (int or
    int tensor), sequence or unknown. Where they are not `counted`, there may be several like the one that is known.
    `items` are their expressions, ("elem", e) for what one expression holds: there is no text for such an item."""

    __slots__ = ("counted", "items", "parts")

    def __init__(self, items: Iterable[Expr], parts: list[tuple[str, Value]], counted: bool = True) -> None:
        self.items = tuple(("elem", item[1]) if item[0] == "star" else item for item in items)
        self.parts, self.counted = parts, counted

    @property
    def kinds(self) -> frozenset[str]:
        return frozenset(kind for kind, _ in self.parts)

    @property
    def rank_change(self) -> int | None:
        """How the index changes the rank of a tensor, where that is known."""
        if not self.counted:
            return None
        change, tensors = 0, []
        for kind, value in self.parts:
            if kind in ("slice", "device-slice", "ellipsis"):
                continue
            if kind == "int":
                change -= 1
            elif kind in ("none", "bool"):
                change += 1
            elif kind in ("tensor", "any-tensor", "mask") and value.rank is not None and kind != "any-tensor":
                if kind == "mask":
                    change += 1 - value.rank
                else:
                    change -= 1
                    tensors.append(value.rank)
            else:
                return None
        return change + (max(tensors) if tensors else 0)


def index_part(value: Value) -> tuple[str, Value]:
    """The kind of one index item that is no slice and no ellipsis by its syntax."""
    kind = value.kind
    if kind == "none":
        return "none", value
    if kind in ("int", "number"):
        return "int", value
    if kind == "bool":
        return "bool", value
    if kind == "tensor":
        if value.dtype == "bool":
            return "mask", value
        if value.rank == 0 and value.where in HOST:
            return "int", value  # read on the host, and then an integer
        return ("tensor" if value.dtype in ("int", "number") else "any-tensor"), value
    if kind in ("list", "iter", "numpy"):
        return "sequence", value
    if kind == "extern" and value.ref == "builtins.Ellipsis":
        return "ellipsis", value
    if kind == "object" and value.ref and value.ref[0] == "builtins.slice":
        return "slice", value
    return "unknown", value


def kept_dense(dense: bool | str | None, index: Expr) -> bool | str | None:
    """The density of a view: whole rows stay dense, steps and cut columns leave gaps, and a copy by index is dense."""
    first, *rest = index[1] if index[0] == "tuple" else (index,)
    whole = ("const", None)
    if any(part[0] == "slice" and part[3] not in (whole, ("const", 1)) for part in (first, *rest)):
        return False
    if first[0] == "slice" and any(part[0] == "slice" and part[1:3] != (whole, whole) for part in rest):
        return False
    return dense if first[0] in ("slice", "const") and not rest and dense != "reordered" else None


def names_of(expr: Expr) -> Iterator[str]:
    """The names that may tell what an index is: `rows` of `rows[:, 0].flatten()`, `page_ids` of `page_ids(x)`."""
    while expr[0] in ("sub", "call"):
        if expr[0] == "call" and expr[1][0] in ("name", "attr"):
            yield expr[1][-1]
        expr = expr[1][1] if expr[0] == "call" and expr[1][0] == "attr" else expr[1]
    if expr[0] in ("name", "attr"):
        yield str(expr[-1])
