"""A device tensor given where Python needs a number is read back.

Why it matters
    `int()`, `float()`, `range()`, functions of `math`, and int, float or Scalar parameters of torch functions call
    `item()` on it. The argument parser does it silently.

Instead
    Stay on the device: `torch.sqrt` for `math.sqrt`, an operation with a tensor overload for `alpha=` (multiply,
    then add).

Missed alarms
    Parameters of functions that the models do not list, and conversions by `map`.

False alarms
    Tensors kept on the CPU for a reason that the program text does not show.
"""

from __future__ import annotations

from collections.abc import Iterator

from nosync_lint.finding import Severity
from nosync_lint.link.program import Program
from nosync_lint.link.syncs import Sync
from nosync_lint.link.wording import arguments, describe, outline, receiver, spelled, wording
from nosync_lint.rule import Judgement, Rule, waits


class PythonNumberFromDeviceTensor(Rule):
    code = "NSL205"
    since = "0.1.0"
    severity = Severity.ERROR
    sites = ("python-number-from-device-tensor",)

    def judge(self, site: object, program: Program) -> Iterator[Judgement]:
        assert isinstance(site, Sync)
        several = "each of " if site.spelled[0] in ("list", "tuple") else ""
        read = f"{several}`{wording(site.spelled)}`, {describe(site.operand)},"
        what = f"`{outline(site.expr)}` reads {read} as a Python number"
        yield waits(site, program, what, cure=_cure(site))


_CONVERTED = "d2h.numeric_dunder"
_FACTORS = ("alpha", "beta", "value")


def _cure(site: Sync) -> str:
    """What stays on the device, by what reads the number; empty where the row of the model says it."""
    read, func = spelled(site.spelled), site.expr[1]
    if site.verdict.row == "d2h.tensor_from_tensors":
        return f"torch.stack({read})" if read and site.spelled[0] in ("list", "tuple") else ""
    if read is None:
        return ""
    if site.verdict.row == "d2h.linspace_tensor":
        return ""
    if site.verdict.row != _CONVERTED:
        if any(name in _FACTORS and value == site.spelled for name, value in site.expr[3]) and func[-1] != "pad":
            return f"multiply by {read} first, then the plain operation"
        return f"a number that the host knows, or an operation that takes {read} as a tensor"
    if site.expr[0] == "call" and func[0] == "attr" and func[1] == ("name", "math"):
        given = arguments(site.expr)
        return f"torch.{func[2]}({given}), which stays on the device" if given else ""
    if site.expr[0] == "call" and func == ("name", "range"):
        return f"a bound that the host knows, and a mask on the device, step < {receiver(read)}"
    return f"keep {read} on the device, or keep the number on the host as well"
