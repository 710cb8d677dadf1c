"""What can go wrong: every error names the pool, the operation and the numbers, and leaves the state untouched."""

from __future__ import annotations

from functools import partial


class AllocatorError(Exception):
    """Base of every error of this package. `numbers` holds the values that the message quotes."""

    def __init__(self, pool: str, operation: str, problem: str, **numbers: object) -> None:
        quoted = ", ".join(f"{name}={value}" for name, value in numbers.items())
        super().__init__(f"{pool}.{operation}: {problem}" + (f" ({quoted})" if quoted else ""))
        self.pool = pool
        self.operation = operation
        self.problem = problem
        self.numbers = numbers

    def __reduce__(self) -> tuple[partial[AllocatorError], tuple[()]]:
        """So that a worker can hand it to another process: the message alone would not make it again."""
        return partial(type(self), self.pool, self.operation, self.problem, **self.numbers), ()


class SpecError(AllocatorError, ValueError):
    """The specs of a byte pool contradict each other."""


class BudgetError(AllocatorError, ValueError):
    """The byte budget is too small for what must fit in it."""


class ArgumentError(AllocatorError, TypeError):
    """A tensor of the wrong dtype, rank, length or device, or a count that cannot be."""


class AlignmentError(AllocatorError, ValueError):
    """A count or a position that is no multiple of the page size."""


class OverlapError(AllocatorError, ValueError):
    """One page stands in two segments of one release."""


class GroupError(AllocatorError, RuntimeError):
    """A free group that is opened twice, closed twice, or open where none may be."""


class BindingError(AllocatorError, ValueError):
    """Ids that are foreign, stale, freed twice, or bound where they must not be."""


class CapacityError(AllocatorError, RuntimeError):
    """A pool without room for pages that its caller had already been promised."""


class StateError(AllocatorError, RuntimeError):
    """The operation is not allowed in the present state of the pool."""


class LayerError(AllocatorError, LookupError):
    """A layer whose buffers another pool holds, or another stage of the pipeline."""


class PoisonedError(StateError):
    """The error word is set: counts are wrong by design, and only `clear` recovers the pool."""
