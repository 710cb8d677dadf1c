"""Why a place is believed not to wait: which part of it rules a wait out, or is not known."""

from __future__ import annotations

import builtins
from collections.abc import Iterator, Sequence

from nosync_lint.index.records import CallSite, Expr, IndexWrite, Site
from nosync_lint.link.call_models import Argument, CallModel
from nosync_lint.link.inference import Inference
from nosync_lint.link.names import At
from nosync_lint.link.project import Function
from nosync_lint.link.syncs import Modelled, Spot, Syncs
from nosync_lint.link.trail import Trails
from nosync_lint.link.values import HOST, UNKNOWN, Value
from nosync_lint.link.wording import wording

Part = tuple[str, Expr]
"""A part of a place, with its role."""
Reason = tuple[str, bool]
"""Why a place does not wait, and whether that is because something is not known."""

_INDEX = {
    "int": "an int", "slice": "a slice", "device-slice": "a slice", "ellipsis": "`...`", "none": "None",
    "bool": "a bool", "mask": "a mask", "tensor": "an integer tensor", "any-tensor": "a tensor of unknown dtype",
    "integers": "an int or integers", "sequence": "a sequence", "unknown": "something unknown",
}  # fmt: skip


class Silence:
    """Asks what a place is made of, and which of it keeps the models silent."""

    def __init__(self, inference: Inference, syncs: Syncs, trails: Trails) -> None:
        self._inference, self._syncs, self._trails = inference, syncs, trails

    def parts(self, function: Function, spot: Spot) -> list[Part]:
        """The parts of a place that decide whether it waits."""
        if isinstance(spot, IndexWrite):
            return [("target", spot.base), *_items(spot.subscript), ("value", spot.value)]
        if isinstance(spot, CallSite):
            return self._call_parts(function, spot)
        form, value = spot.form, spot.value
        if form == "read":
            return [("base", value[1]), *_items(value[2])]
        if form == "test":
            return [("tested", value)]
        if form == "compare":
            return [("left side", value[2]), *(("right side", one) for one in value[3])]
        if form == "format":
            return [("part", one) for one in value[1]]
        return [("left side", value[2]), ("right side", value[3])]

    def _call_parts(self, function: Function, site: CallSite) -> list[Part]:
        found = self._syncs.rows_of(function, site)
        if found is None or (found.copy is None and not found.models):
            return []
        parts: list[Part] = []
        func, call = site.call[1], site.call
        if found.copy is not None:
            source = found.given.find(found.copy.source)
            if func[0] == "attr" and found.copy.into:
                parts.append(("destination", func[1]))
            if source is not None:
                parts.append(("copied", source))
            rest = [*call[2], *(value for name, value in call[3] if name == "device")]
            parts += [("argument", one) for one in rest if one != source]
        for model in found.models:
            if model.form == "none":
                parts += [("receiver", func[1])] if func[0] == "attr" and found.base is not UNKNOWN else []
                continue
            listed = [found.given.find(one) for one in model.operands] if model.form == "listed" else found.given.all
            parts += [(_role(one, func), one) for one in listed if one is not None]
        return parts

    def of(self, function: Function, spot: Spot) -> Reason:
        """Why a place of which no row holds does not wait."""
        at = At(function, spot.seq, spot.block)
        if isinstance(spot, CallSite):
            return self._of_call(function, spot, at)
        if isinstance(spot, IndexWrite):
            return self._of_write(spot, at)
        if spot.form == "read":
            return self._of_read(spot, at)
        parts = [(wording(expr), self._inference.value(expr, at)) for _, expr in self.parts(function, spot)]
        return self._of_values(parts, "the text holds", "read back") if parts else ("nothing in it is a tensor", False)

    def _of_values(self, parts: Sequence[tuple[str, Value]], nothing: str, done: str) -> Reason:
        unknown = [text for text, value in parts if not value.known]
        if unknown:
            return f"it is not known what {_listed(unknown)} is; a tensor on the device would be {done}", True
        told = "; ".join(f"`{text}` is {self._trails.words(value)}" for text, value in parts[:3])
        return f"no tensor on the device is {done}: {told}", False

    # -- index reads and writes --

    def _of_write(self, write: IndexWrite, at: At) -> Reason:
        target = self._inference.value(write.base, at)
        name = f"`{wording(write.base)}`"
        shape = self._inference.index_shape(write.subscript, at)
        if not target.known:
            return f"it is not known what {name} is, and no index of it lives on the device", True
        reason = self._of_base(name, target, "a store into that")
        if reason is not None:
            return reason
        value = self._inference.value(write.value, at)
        kinds = _kinds([kind for kind, _ in shape.parts])
        stored = self._trails.words(value)
        if write.op is not None:
            return f"an augmented store through {kinds} reads nothing back", "unknown" in shape.kinds
        if not value.known:
            return f"it is not known what is stored; through {kinds}, a Python number might wait", True
        return f"storing {stored} through {kinds} runs on the device alone", "unknown" in shape.kinds

    def _of_read(self, site: Site, at: At) -> Reason:
        base = self._inference.value(site.value[1], at)
        name = f"`{wording(site.value[1])}`"
        shape = self._inference.index_shape(site.value[2], at)
        unknown = "unknown" in shape.kinds or "any-tensor" in shape.kinds
        kinds = _kinds([kind for kind, _ in shape.parts])
        if not base.known:
            return f"it is not known what {name} is; the index is {kinds}", unknown
        reason = self._of_base(name, base, "an index into that")
        if reason is not None:
            return reason
        return f"an index that is {kinds} reads nothing back to the host", unknown

    def _of_base(self, name: str, base: Value, what: str) -> Reason | None:
        if base.kind != "tensor":
            return f"{name} is {self._trails.words(base)}: {what} does not touch the device", False
        if base.where in HOST:
            return f"{name} lives on the host: {what} does not touch the device", False
        return None

    # -- calls --

    def _of_call(self, function: Function, site: CallSite, at: At) -> Reason:
        found = self._syncs.rows_of(function, site)
        func = site.call[1]
        if found is None:
            return self._of_other(function, site)
        if found.copy is None and not found.models:
            if func[0] == "attr" and found.base.known:
                what = self._trails.words(found.base)
                return f"`{wording(func[1])}` is {what}, and no row tells of `.{func[2]}()` of that", False
            return self._of_other(function, site)
        admitted = [model for model in found.models if model.admits(found.given)]
        given = [expr for _, expr in self._call_parts(function, site) if expr[0] != "const"]
        parts = [(wording(expr), self._inference.value(expr, at)) for expr in dict.fromkeys(given)]
        unknown = [text for text, value in parts if not value.known]
        if found.copy is None and not admitted:
            return f"with these arguments it does not wait{_wanted(found.models)}", False
        if unknown:
            return f"it is not known what {_listed(unknown)} is", True
        if found.copy is not None:
            return self._of_copy(site, found, at), False
        lives = "the host" if admitted[0].lives == "host" else "the device"
        told = "; ".join(f"`{text}` is {self._trails.words(value)}" for text, value in parts[:3]) or "it is given none"
        return f"it waits for tensors on {lives} only: {told}", False

    def _of_copy(self, site: CallSite, found: Modelled, at: At) -> str:
        assert found.copy is not None
        expr = found.given.find(found.copy.source)
        source = self._inference.value(expr, at) if expr is not None else found.base
        target = found.base if found.copy.into else self._inference.value(site.call, at)
        return f"a copy from {self._trails.words(source)} to {self._trails.words(target)} does not wait"

    def _of_other(self, function: Function, site: CallSite) -> Reason:
        """A call that the models do not know by name."""
        targets = self._inference.targets(function, site)
        if targets:
            return "runs code of the project", False
        step = self._trails.unresolved(function, site)
        if step is not None:
            return f"cannot be resolved: {step.note.rpartition(': ')[2]}", False
        func, at = site.call[1], At(function, site.seq, site.block)
        callee = self._inference.value(func, at)
        if callee.kind == "extern":
            name = callee.ref.removeprefix("builtins.")
            if name != callee.ref and not hasattr(builtins, name):
                return f"`{name}` is bound nowhere in the file", False
            return f"no row of the models tells of `{name}`", False
        if func[0] == "attr" and (base := self._inference.value(func[1], at)).known:
            return f"no row of the models tells of `.{func[2]}()` of {self._trails.words(base)}", False
        return f"no row of the models tells of {self._trails.words(callee)}", False


def _items(subscript: Expr) -> Iterator[Part]:
    for item in subscript[1] if subscript[0] == "tuple" else (subscript,):
        if item[0] == "slice":
            yield from (("bound", bound) for bound in item[1:4])
        else:
            yield "index", item


def _role(expr: Expr, func: Expr) -> str:
    return "receiver" if func[0] == "attr" and expr == func[1] else "argument"


def _kinds(kinds: Sequence[str]) -> str:
    return " and ".join(dict.fromkeys(_INDEX[kind] for kind in kinds)) or "nothing"


def _listed(texts: Sequence[str]) -> str:
    return " or ".join(f"`{text}`" for text in dict.fromkeys(texts))


def _wanted(models: Sequence[CallModel]) -> str:
    """What arguments a call must have to wait."""
    wanted = [f"{_spelled(one)}" for model in models for one in model.when]
    refused = [f"{_spelled(one)}" for model in models for one in model.unless]
    parts = [f"it would with {' and '.join(wanted)}"] if wanted else []
    parts += [f"it would without {' or '.join(dict.fromkeys(refused))}"] if refused else []
    return f": {', '.join(parts)}" if parts else ""


def _spelled(argument: Argument) -> str:
    name = argument.name or f"argument {argument.position}"
    return f"`{name}={argument.value!r}`" if argument.value is not None else f"`{name}`"
