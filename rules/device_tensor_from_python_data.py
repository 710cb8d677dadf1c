"""A device tensor made from Python data is copied from pageable memory and waits.

Why it matters
    `torch.tensor(data, device=...)` builds a CPU tensor first, and the copy to the device is from pageable memory,
    which returns only when the stream has drained. A single number costs as much as a list.

Instead
    A scalar: `torch.full((), x, device=device)`. A list: `torch.tensor(x, pin_memory=True).to(device,
    non_blocking=True)`. A constant: once, outside the step.

Missed alarms
    Devices that nothing in the project shows, and `torch.set_default_device`.

False alarms
    Tensors kept on the CPU for a reason that the program text does not show.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

from nosync_lint.finding import Applicability, Severity
from nosync_lint.link.program import Program
from nosync_lint.link.rewriting import argument_parts, bound_name, is_number, repeats
from nosync_lint.link.syncs import Sync
from nosync_lint.link.values import MAYBE_PAGEABLE
from nosync_lint.link.wording import arguments, outline, receiver, spelled
from nosync_lint.rule import Judgement, Rewrite, Rule, tier, waits

if TYPE_CHECKING:
    from libcst.matchers import BaseMatcherNode


class DeviceTensorFromPythonData(Rule):
    code = "NSL103"
    since = "0.1.0"
    severity = Severity.ERROR
    sites = ("device-tensor-from-python-data",)
    recipes = ("full-scalar", "pinned-staging", "hoisting")

    @staticmethod
    @cache
    def shape() -> BaseMatcherNode:
        import libcst.matchers as m

        return m.Call()

    def judge(self, site: object, program: Program) -> Iterator[Judgement]:
        assert isinstance(site, Sync)
        what = f"`{outline(site.expr)}` builds a tensor on the host, copies it from pageable memory"
        yield waits(site, program, what, cure=_cure(site))

    def fix(self, site: object, program: Program) -> Rewrite | None:
        assert isinstance(site, Sync)
        _, func, given, words, _ = site.expr
        told, rest = {word for word, _ in words}, argument_parts(site.expr, (0, "device"))
        if func[0] != "attr" or len(given) != 1 or rest is None or not told <= {"device", "dtype"}:
            return None
        held = given[0][1] if given[0][0] == "list" and len(given[0][1]) == 1 else None
        number = program.value(site, held[0] if held else given[0])
        if is_number(number) and func[2] in ("tensor", "as_tensor", "new_tensor"):
            sizes, data = ("(1,)", "{args[0].item[0]}") if held else ("()", "{args[0]}")
            made = "new_full" if func[2] == "new_tensor" else "full"
            filled = ", ".join([sizes, data, *(argument_parts(site.expr, (0,)) or ())])
            literal = given[0][0] == "const" or "dtype" in told or number.kind != "float" or func[2] == "new_tensor"
            message = "Fill the tensor on the device"
            return Rewrite("full-scalar", tier(literal), message, f"{{receiver}}.{made}({filled})")
        record = site.function.record
        constant = given[0][0] in ("list", "tuple") and all(one[0] == "const" for one in given[0][1])
        if constant and repeats(record, site.block, site.expr) and bound_name(record, site.expr) is not None:
            message = "Make it once, before the loop"  # for display: who else writes to it is not known
            return Rewrite("hoisting", Applicability.DISPLAY, message, "", hoisted=True)
        listed = program.value(site, given[0]).kind in ("list", "tuple")
        if func[2] not in ("tensor", "as_tensor") or "device" not in told or not listed:
            return None
        staged = f"{{receiver}}.tensor({', '.join(['{args[0]}', *rest, 'pin_memory=True'])})"
        message = "Stage the data in pinned memory and copy without waiting"
        staged += ".to({args[device]}, non_blocking=True)"
        return Rewrite("pinned-staging", Applicability.UNSAFE, message, staged)


def _cure(site: Sync) -> str:
    """A fill for a number, and a copy from pinned memory for everything else."""
    _, func, args, kwargs, _ = site.expr
    name, words = func[-1], {word: spelled(value) for word, value in kwargs}
    data = spelled(site.spelled) or "..."
    of = receiver(spelled(func[1]) or "...") if name == "new_tensor" else None
    if site.spelled[0] == "const" or site.operand.rank == 0:
        rest = arguments((*site.expr[:2], args[1:], *site.expr[3:]))
        given = f"(), {data}, {rest}" if rest else f"(), {data}"
        return f"{of}.new_full({given})" if of else f"torch.full({given})"
    typed = name.endswith("Tensor")
    device = f"{of}.device" if of else words.get("device") or ('"cuda"' if typed else "device")
    dtype = f"{of}.dtype" if of else words.get("dtype")
    if site.operand.kind == "numpy" or site.operand.where in MAYBE_PAGEABLE:
        made = f"torch.from_numpy({data})" if site.operand.kind == "numpy" else receiver(data)
        return f"{made}.pin_memory().to({device}, {f'{dtype}, ' if dtype else ''}non_blocking=True)"
    on_host = "" if of or typed or "device" in words else 'device="cpu", '
    given = f"{data}, {f'dtype={dtype}, ' if dtype else ''}{on_host}pin_memory=True"
    once = "once, outside the step, or " if site.spelled[0] in ("list", "tuple") else ""
    return f"{once}without waiting: torch.tensor({given}).to({device}, non_blocking=True)"
