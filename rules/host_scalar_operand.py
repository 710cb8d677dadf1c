"""`torch.where` with a 0-dim tensor of the host copies it to the device and waits.

Why it matters
    Other element-wise operations take a 0-dim CPU tensor as a kernel argument; `where` moves it with a blocking
    copy.

Instead
    The Python number itself: `torch.where(mask, x, 0.0)`. It is filled on the device.

Missed alarms
    Operands that nothing in the project shows to be a tensor on the device.

False alarms
    Tensors kept on the CPU for a reason that the program text does not show.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

from nosync_lint.finding import Severity
from nosync_lint.link.program import Program
from nosync_lint.link.rewriting import argument_parts, is_number, is_proven, same_in_float32
from nosync_lint.link.syncs import Sync
from nosync_lint.link.values import Value
from nosync_lint.link.wording import describe, outline, receiver, spelled, wording
from nosync_lint.rule import Judgement, Rewrite, Rule, tier, waits

if TYPE_CHECKING:
    from libcst.matchers import BaseMatcherNode

    from nosync_lint.index.records import Expr


class HostScalarOperand(Rule):
    code = "NSL107"
    since = "0.1.0"
    severity = Severity.ERROR
    sites = ("host-scalar-operand",)
    recipes = ("where-number",)

    @staticmethod
    @cache
    def shape() -> BaseMatcherNode:
        import libcst.matchers as m

        return m.Call()

    def judge(self, site: object, program: Program) -> Iterator[Judgement]:
        assert isinstance(site, Sync)
        scalar = f"`{wording(site.spelled)}`, {describe(site.operand)},"
        what = f"`{outline(site.expr)}` copies {scalar} to the device"
        yield waits(site, program, what, cure=_cure(site.spelled))

    def fix(self, site: object, program: Program) -> Rewrite | None:
        assert isinstance(site, Sync)
        _, func, given, words, _ = site.expr
        parts = argument_parts(site.expr)
        if parts is None or words or site.spelled not in given or func[0] != "attr":
            return None
        place = given.index(site.spelled)
        literal = _literal(site.spelled)
        parts[place] = f"{{args[{place}]}}.item()" if literal is None else f"{{args[{place}].args[0]}}"
        operands = given[1:] if len(given) == 3 else (func[1], *given[1:])
        others = [program.value(site, one) for one in operands if one != site.spelled]
        sure = literal is not None and len(others) == 1 and _keeps_dtype(literal, site.operand, others[0])
        message = "Pass the Python number, which is filled in on the device"
        return Rewrite("where-number", tier(sure), message, f"{{function}}({', '.join(parts)})")


def _cure(scalar: Expr) -> str:
    """The Python number: the one that the tensor is made of where that is written down, or what is read on the host."""
    made = scalar[0] == "call" and scalar[1][-1] == "tensor" and len(scalar[2]) == 1
    number = spelled(scalar[2][0]) if made else None
    if number is not None:
        return f"pass the number: {number}"
    text = spelled(scalar)
    return f"pass a number: {receiver(text)}.item(), which does not wait on the host" if text else ""


def _literal(scalar: Expr) -> bool | float | None:
    """The number that a tensor is made of where both are written down."""
    made = scalar[0] == "call" and scalar[1][-1] == "tensor" and len(scalar[2]) == 1
    if not made or any(word not in ("dtype", "device") for word, _ in scalar[3]):
        return None
    data = scalar[2][0]
    if data[:2] == ("call", ("name", "float")) and data[2] in _INFINITE:
        return float(data[2][0][1])
    return data[1] if data[0] == "const" and isinstance(data[1], bool | int | float) else None


_INFINITE = tuple((("const", text),) for text in ("inf", "-inf", "nan"))


def _keeps_dtype(number: float, scalar: Value, other: Value) -> bool:
    """Whether a number beside the other operand gives the same values, of the same dtype, as the tensor made of it.

    A 0-dim tensor has no say in the dtype beside one with dimensions, unless it is of a higher class: then a number
    stands for the default dtype.
    """
    if scalar.ref not in ("default", "float32", "int64", "bool") or not same_in_float32(number):
        return False
    if is_number(other):
        return scalar.ref in ("default", "int64") and scalar.dtype == other.kind
    beside = is_proven(other) and bool(other.rank) and other.ref not in ("float16", "bfloat16")
    return beside and (scalar.dtype == other.dtype or other.dtype == "float" or scalar.ref in ("default", "int64"))
