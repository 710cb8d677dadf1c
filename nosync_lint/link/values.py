"""What a value is: its kind, and for a tensor where it lives, its rank and its dtype class.

Values are small immutable tuples, so that they can be compared between rounds. `vote` is the policy for writers and
callers that may disagree, with the confidence of the outcome as part of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

from nosync_lint.finding import Confidence

HOST = frozenset({"host", "pinned", "loaded"})
MAYBE_PAGEABLE, MAYBE_PINNED = HOST - {"pinned"}, HOST - {"host"}
ACCELERATED = frozenset({"device", "parametrised"})
NUMBERS = frozenset({"int", "float", "bool", "number"})
MAX_TEXTS = 4
"""A string that may be more texts than this is not known."""
MAX_NESTING = 3
"""Containers in containers are followed so deep: recursion would nest them without end."""
MAX_CLASSES = 12
"""A receiver that may be of more classes than this is of no known class."""


class Origin(NamedTuple):
    """Where a fact comes from: module number, row, what stands there, and where that came from. `argument`: the value
    came in as an argument, so that another call may bring another."""

    module: int
    row: int
    note: str
    before: Origin | None = None
    argument: bool = False

    def cut(self, length: int) -> Origin:
        """The last `length` steps of the story."""
        return self._replace(before=self.before.cut(length - 1) if self.before is not None and length > 1 else None)


class Value(NamedTuple):
    """`kind`: tensor, numpy, int, float, bool, number, str, none, list, tuple, dict, set, iter, object, class,
    function, method, module, extern, batch (a tensor, or a record of tensors like `items`), unknown, or bottom (not
    known yet).

    `where` (tensors, devices and objects that hold tensors): device, parametrised, host (not pinned), pinned, loaded
    (on the host, pinned or not, as what comes from a data loader), meta, or None.
    `dtype`: bool, int, float, or number for an int or float.
    `ref`: the class numbers or external names of an object or class, the function numbers of a function, the dotted
    name of a module or external symbol, the value of a constant, the exact name of a dtype or of that of a tensor where
    nothing leaves a doubt. `items`: the element of a container, or the
    elements of a tuple. `dense`: whether a tensor fills its memory without gaps; "reordered" where it does, with its
    dimensions in another order. `trust`: 2 certain, 1 likely, 0 possible. `exact`: the class is the constructed one
    and no subclass.
    """

    kind: str
    where: str | None = None
    rank: int | None = None
    dtype: str | None = None
    ref: Any = None
    items: Any = None
    trust: int = 2
    exact: bool = False
    dense: bool | str | None = None
    why: Origin | None = None

    @property
    def known(self) -> bool:
        return self.kind not in ("unknown", "bottom")

    @property
    def is_tensor(self) -> bool:
        return self.kind == "tensor"

    @property
    def accelerated(self) -> bool:
        """Whether this is a tensor that lives on the device, or arrives on a device given as a parameter."""
        return self.kind == "tensor" and self.where in ACCELERATED

    @property
    def confidence(self) -> Confidence:
        return (Confidence.POSSIBLE, Confidence.LIKELY, Confidence.CERTAIN)[self.trust]

    def weaker(self, trust: int) -> Value:
        return self if self.trust <= trust else self._replace(trust=trust)

    def guessed(self) -> Value:
        """The same value, of which a name is the only witness."""
        return self.weaker(1)._replace(ref=None) if self.kind == "tensor" and self.ref else self.weaker(1)


BOTTOM = Value("bottom")
UNKNOWN = Value("unknown", trust=0)
NONE = Value("none")


def vote(values: Iterable[Value]) -> Value:
    """The value that several writers, callers or branches agree on.

    Unresolved voters and None are dropped, and dropping an unresolved one costs certainty. So are constant numbers
    beside tensors. Disagreement about
    the kind is decided by the majority, and is at most possible when there is none. Confidence comes from the best
    of the winners: were it the worst, a doubt that passes once through a cycle of calls would stay in it.
    """
    if isinstance(values, list) and len(values) == 1:
        only: Value = values[0]
        return only
    voters = [value for value in values if value.kind != "bottom"]
    if not voters:
        return BOTTOM
    first = voters[0]
    if len(voters) == 1 or voters.count(first) == len(voters):
        return first
    resolved = [value for value in voters if value.kind not in ("unknown", "none")]
    if not resolved:
        return NONE if all(value.kind == "none" for value in voters) else UNKNOWN
    doubted = any(value.kind == "unknown" for value in voters)
    sure = [value for value in resolved if value.kind != "batch" or value.trust]
    if len(sure) < len(resolved) and any(value.kind in ("tensor", "batch") for value in sure):
        resolved, doubted = sure, True  # a field of a batch that may be anything says no more
    winners, trust = resolved, 1 if doubted else 2
    if len({value.kind for value in resolved}) > 1:
        winners, agreed = _vote_kind(resolved)
        trust = min(trust, agreed)
    joined = winners[0]
    for value in winners[1:]:
        if value is not joined:
            joined = _join(joined, value)
            if not joined.known:
                return UNKNOWN
    if joined.kind == "tensor":
        where, agreed = _vote_where(winners)
        told = (v.why for v in winners if v.why is not None and (v.where in ACCELERATED) == (where in ACCELERATED))
        joined = joined._replace(where=where, why=min(told, key=_story, default=joined.why))
        trust = min(trust, agreed)
    if doubted and joined.exact:
        joined = joined._replace(exact=False)  # what was not resolved may be a subclass
    if joined.kind == "tensor" and (doubted or len(winners) < len(resolved)):
        joined = joined._replace(ref=None)  # or have another dtype
    return joined.weaker(trust)


def _vote_kind(resolved: list[Value]) -> tuple[list[Value], int]:
    """The voters of the kind that most of them have, and how far that can be trusted."""
    trust = 2
    started = [v for v in resolved if not (v.kind in NUMBERS and v.ref is not None)]
    if len(started) < len(resolved) and any(v.kind == "tensor" for v in started):
        resolved, trust = started, 1  # `total = 0` is where a sum of tensors begins
    kinds = Counter("number" if value.kind in NUMBERS else value.kind for value in resolved)
    count = max(kinds.values())
    kind = min(name for name, times in kinds.items() if times == count)
    if len(kinds) > 1:
        trust = min(trust, 1 if 2 * count > len(resolved) else 0)
    return [v for v in resolved if v.kind == kind or (kind == "number" and v.kind in NUMBERS)], trust


def _vote_where(winners: list[Value]) -> tuple[str | None, int]:
    """Where the tensor lives by majority, and how far that can be trusted.

    Operands of one operation live together, so one voter on the device speaks for those that are not known; one
    on the host does not, since host tensors are what defaults and fallbacks make.
    """
    where = winners[0].where
    if all(value.where == where for value in winners):
        return where, 2
    places = Counter(value.where for value in winners if value.where is not None)
    complete = sum(places.values()) == len(winners)
    near = sum(places[name] for name in ACCELERATED)
    far = sum(places[name] for name in HOST)
    if near and far:
        if near == far:
            return None, 0
        return ("parametrised" if near > far else "host"), 0 if min(near, far) * 3 > max(near, far) else 1
    if near:
        return ("parametrised" if "parametrised" in places else "device"), 2 if complete else 1
    if not complete:
        return None, 2
    if far:
        hosts = HOST & set(places)
        return next(iter(hosts)) if len(hosts) == 1 else "loaded", 2
    return "meta", 2


def _join(a: Value, b: Value) -> Value:
    """Two values of one kind. What they disagree on becomes unknown."""
    why = a.why if b.why is None else b.why if a.why is None else min(a.why, b.why, key=_story)
    trust = max(a.trust, b.trust)  # one good witness; what the others lack is a cap in `vote`
    kind = a.kind if a.kind == b.kind else "number"
    if kind == "str":
        trust = min(a.trust, b.trust)  # a text that another may stand for, of which nothing is known
    if kind in ("object", "class", "function", "method"):
        ref = a.ref if a.ref == b.ref and len(a.ref) == 1 else tuple(sorted({*a.ref, *b.ref}, key=repr))
        if len(ref) > MAX_CLASSES:
            return UNKNOWN
        where = a.where if a.where == b.where else None
        return Value(kind, where, ref=ref, items=a.items, trust=trust, exact=a.exact and b.exact, why=why)
    if kind in ("extern", "module") and a.ref != b.ref:
        return UNKNOWN
    if kind == "str" and a.ref != b.ref and a.ref is not None and b.ref is not None:
        texts = tuple(sorted({*alternatives(a.ref), *alternatives(b.ref)}))
        return Value(kind, ref=texts if len(texts) <= MAX_TEXTS else None, trust=trust, why=why)
    return Value(
        kind,
        a.where if a.where == b.where else None,
        a.rank if a.rank == b.rank else None,
        a.dtype if a.dtype == b.dtype or b.dtype is None else b.dtype if a.dtype is None else None,
        a.ref if a.ref == b.ref else _join_fields(a.ref, b.ref) if kind == "dict" else None,
        _join_items(a.items, b.items),
        trust,
        dense=a.dense if a.dense == b.dense else None,
        why=why,
    )


def _story(origin: Origin) -> tuple[int, int, int, str]:
    """Stories are compared by length, then by place: the shortest explains best."""
    return (1 + (origin.before is not None), origin.module, origin.row, origin.note)


def alternatives(ref: Any) -> tuple[Any, ...]:
    """The texts that a joined string may be."""
    return ref if isinstance(ref, tuple) else (ref,)


def _join_items(a: Any, b: Any) -> Any:
    if a == b or b is None:
        return a
    if a is None:
        return b
    if isinstance(a, Value) and isinstance(b, Value):
        return vote([a, b])
    if isinstance(a, Value) or isinstance(b, Value) or len(a) != len(b):
        return None
    return tuple(vote([x, y]) for x, y in zip(a, b, strict=True))


def field(mapping: Value, key: object) -> Value:
    """The entry of a dictionary under a literal key: unknown where its keys are known and this is none of them."""
    return next((value for name, value in mapping.ref if name == key), UNKNOWN)


def _join_fields(a: Any, b: Any) -> Any:
    """The fields of two dictionaries that may be the same one."""
    if a is None or b is None:
        return None
    fields = dict(a)
    for key, value in b:
        fields[key] = vote([fields[key], value]) if key in fields else value
    return tuple(fields.items())


def with_fills(container: Value, fills: Value) -> Value:
    """A container with what is put into it: fields of a dictionary by their key, everything else as elements."""
    if fills.kind == "bottom":
        return container
    held = container.items
    voters = [] if held is None else [held] if isinstance(held, Value) else list(held)
    fields = container.ref if held is not None else ()
    known = container.kind == "dict" and fields is not None and fills.ref is not None
    return container._replace(
        items=vote([*voters, fills.items]), ref=_join_fields(fields, fills.ref) if known else None
    )


def alike(a: Value, b: Value) -> bool:
    """Whether two values are the same in all but the story of how they are known, also in what they hold."""
    return a[:4] == b[:4] and a[6:9] == b[6:9] and _alike(a.ref, b.ref) and _alike(a.items, b.items)


def _alike(a: Any, b: Any) -> bool:
    if isinstance(a, Value) and isinstance(b, Value):
        return alike(a, b)
    if type(a) is tuple and type(b) is tuple:
        return len(a) == len(b) and all(_alike(one, other) for one, other in zip(a, b, strict=True))
    return bool(a == b)


def capped(value: Value, depth: int = MAX_NESTING) -> Value:
    """A container that forgets what stands in it too deep, so that what nests without end comes to rest."""
    items = value.items
    if items is None or value.kind == "batch":
        return value
    if not depth:
        return value._replace(items=None, ref=None if value.kind == "dict" else value.ref)
    if isinstance(items, Value):
        fields = (
            tuple((key, capped(one, depth - 1)) for key, one in value.ref)
            if value.kind == "dict" and value.ref
            else value.ref
        )
        return value._replace(items=capped(items, depth - 1), ref=fields)
    return value._replace(items=tuple(capped(one, depth - 1) for one in items)) if value.kind == "tuple" else value


def element(value: Value) -> Value:
    """What iterating over a value gives."""
    if value.kind in ("bottom", "unknown"):
        return value
    if value.kind == "tensor":
        return value._replace(rank=None if value.rank is None else max(value.rank - 1, 0))
    if value.kind == "str":
        return Value("str")
    if value.kind == "dict":
        return UNKNOWN
    items = value.items
    if isinstance(items, Value):
        return items
    return vote(items) if items else UNKNOWN


def constant(value: Any) -> Value:
    """The value of a literal."""
    if value is None:
        return NONE
    return Value("float" if isinstance(value, complex) else type(value).__name__, ref=value)
