"""Stores through an index, with what is known of their parts."""

from __future__ import annotations

from typing import NamedTuple

from nosync_lint.index.records import Expr, IndexWrite
from nosync_lint.link.indexing import IndexShape
from nosync_lint.link.values import Value


class Store(NamedTuple):
    """An index write with what is known of its parts."""

    write: IndexWrite
    target: Value
    shape: IndexShape
    value: Value

    @property
    def alone(self) -> bool:
        """Whether the index is one item, itself."""
        return self.shape.items == (self.write.subscript,)

    @property
    def parts(self) -> dict[str, Expr]:
        """The parts of the statement, by the names that templates of rewrites have for them."""
        write = self.write
        numbered = {f"index[{number}]": item for number, item in enumerate(self.shape.items)}
        return {"target": write.base, "index": write.subscript, "value": write.value, **numbered}
