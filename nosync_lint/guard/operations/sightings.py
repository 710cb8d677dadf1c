"""Waits as they are met: of an operation of the dispatcher, of Python that reads all of a tensor, and written out."""

from __future__ import annotations

from typing import Any

from nosync_lint.guard.operations.conditions import Call
from nosync_lint.guard.operations.constructs import THREAD, kind, within
from nosync_lint.guard.operations.copies import COPIES
from nosync_lint.guard.operations.table import Operation, Waits, causes
from nosync_lint.guard.witness import Sight, saw, saw_unlisted
from nosync_lint.models import load


def entries(operation: Operation, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Waits]:
    """The entries of the table by which an operation waits with these arguments, or may."""
    call = Call(operation.parameters, args, kwargs)
    return [entry for entry in operation.waits if entry.condition is None or entry.condition(call)]


def judge(operation: Operation, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Tells the guards of an operation that is not run on a device: it waits where the table says so."""
    if operation.tag is not None:
        saw_tagged(operation)
    for entry in entries(operation, args, kwargs):
        meet(operation, entry)


def meet(operation: Operation, entry: Waits) -> bool:
    """Tells the guards that an operation waits, by an entry of the table; false where no row of it speaks of this."""
    if not causes().cause(entry.row).hidden:
        COPIES.waited()
    inside, construct = entry.inside, kind()
    return saw(causes(), _sight(entry.row, operation)._replace(inside=inside, construct=construct, called=entry.called))


def saw_tagged(operation: Operation) -> None:
    """An operation that the table does not hold, and that torch tags as one that reads values."""
    assert operation.tag is not None
    rule, tag = operation.tag
    why = f"Torch tags it `{tag}`: the host must know values that only the device has."
    saw_unlisted(rule, _sight("", operation), why)


def saw_measured(operation: Operation) -> None:
    """An operation that made the host wait, and that no row speaks of."""
    rule = operation.tag[0] if operation.tag is not None else _stand_in()
    saw_unlisted(rule, _sight("", operation), "The host waited for the device, and no row of the model says why.")


def saw_elsewhere() -> None:
    """A wait of the host while no operation ran: an extension waits, or a stream or event of another kind."""
    why = "The host waited for the device, outside of all operations of torch."
    saw_unlisted(_stand_in(), Sight("", "runtime", "a wait for the device"), why)


def _stand_in() -> str:
    """The rule for what is known to wait by its outcome alone."""
    return causes().cause(load("dispatch")["rows"]["stand_in"]).name


def _sight(row: str, operation: Operation) -> Sight:
    construct = THREAD.construct
    what = construct.text if construct is not None else f"`{operation.name.removeprefix('aten.')}`"
    return Sight(row, operation.name, what, backward=THREAD.backward, caller=THREAD.caller)


def saw_read(row: str, what: str) -> None:
    """A wait that reaches no dispatcher, because Python asks for all of a tensor."""
    if THREAD.construct is None or THREAD.construct.kind == "module":
        COPIES.waited()
        with within("python", what):
            saw(causes(), Sight(row, "python", what, backward=THREAD.backward))


def saw_wait(row: str, call: str, copies: int | None = None) -> None:
    """A wait that is written out: of the device, a stream or an event, which may be about the first copies only."""
    COPIES.waited(copies)
    saw(causes(), Sight(row, call.removesuffix("()"), call))
