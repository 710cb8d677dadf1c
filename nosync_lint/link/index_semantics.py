"""What index reads and writes wait for: by the kinds of the index items, the target, and the stored value."""

from __future__ import annotations

from collections.abc import Iterator

from nosync_lint.link.indexing import IndexShape
from nosync_lint.link.semantics import Semantics, Verdict
from nosync_lint.link.values import ACCELERATED, HOST, NUMBERS, Value

Wait = tuple[Verdict, Value]
"""A verdict and the value that it rests on: the target of a store, or the index item that is read or copied."""

_TENSORS = ("tensor", "any-tensor")


class IndexSemantics:
    """Verdicts of the index matrices: `base[index]`, `base[index] = value` and the augmented form."""

    def __init__(self, semantics: Semantics) -> None:
        self._semantics = semantics

    def read(self, base: Value, shape: IndexShape) -> Iterator[Wait]:
        """`base[index]`. An unknown base is believed to be a tensor where the index can belong to nothing else."""
        yield from self._bounds(base, shape)
        for kind, value in shape.parts:
            if kind == "mask" and _on_device(value, base) and _may_index(base):
                row = "read.cuda0d_idx" if value.rank == 0 else "read.cuda_mask"
                why = "a mask selects as many elements as it holds, which is read back"
                yield self._verdict(row, _beside(base, value), why), value
            elif kind in _TENSORS and value.accelerated and value.rank == 0 and base.kind not in _MAPPINGS:
                row = "read.cpu_tensor_cuda_index" if base.where in HOST else "read.cuda0d_idx"
                row = "d2h.numeric_dunder" if base.kind in ("list", "tuple", "iter", "numpy") else row
                yield self._verdict(row, _beside(base, value), "a 0-dim device index is read back"), value
            else:
                yield from self._from_host(base, kind, value, "read.cpu_idx", "read.py_seq")

    def write(self, target: Value, shape: IndexShape, value: Value, op: str | None) -> Iterator[Wait]:
        """`target[index] = value`, or with `op` the augmented form."""
        yield from self._bounds(target, shape)
        if op is not None:
            yield from self._augmented(target, shape)
            return
        for kind, item in shape.parts:
            yield from self._from_host(target, kind, item, "write.cpu_idx", "write.py_seq_idx")
        if target.where in HOST:
            yield from self._to_host(target, shape)
            return
        stored = _stored(value)
        if stored in ("number", "cpu0d"):
            yield from self._scalar(target, shape, value, stored)
        elif stored == "device" and target.where not in HOST:
            yield from self._device_value(target, shape, value)
        elif stored == "host" and target.accelerated and shape.kinds <= _BASIC:
            trust = min(target.trust, value.trust, 1 if value.rank is None else 2)
            yield self._verdict("write.basic.cpu_nd", trust, "item assignment cannot be asynchronous"), value

    def _verdict(self, row: str, trust: int, because: str, rule: str | None = None) -> Verdict:
        return self._semantics.verdict(row, trust, because, rule)

    def _bounds(self, base: Value, shape: IndexShape) -> Iterator[Wait]:
        for kind, value in shape.parts:
            if kind == "device-slice" and base.kind not in _MAPPINGS:
                yield self._verdict("read.slice_tensor_bound", value.trust, "a slice needs Python integers"), value

    def _from_host(self, base: Value, kind: str, value: Value, tensor_row: str, sequence_row: str) -> Iterator[Wait]:
        """An index item that is uploaded before a device tensor can be indexed with it."""
        if not base.accelerated:
            return
        if kind in _TENSORS and value.where in HOST and value.rank != 0:
            trust = min(base.trust, value.trust, 2 if kind == "tensor" else 1)
            yield self._verdict(tensor_row, trust, "an integer index on the host is copied to the device first"), value
        elif kind == "sequence":
            held = value.items if isinstance(value.items, Value) else None
            if held is not None and held.accelerated:
                if held.rank == 0:
                    yield (
                        self._verdict("read.list_of_0d", min(base.trust, held.trust), "each element is read back"),
                        held,
                    )
                return
            trust = min(base.trust, value.trust, 1 if value.kind in ("numpy", "iter") else 2)
            masked = held is not None and held.kind == "bool"
            row = "write.py_bool_seq" if masked else sequence_row
            yield (
                self._verdict(row, trust, "a sequence becomes a tensor on the host, which is copied"),
                value,
            )

    def _to_host(self, target: Value, shape: IndexShape) -> Iterator[Wait]:
        """A store into a host table: an index of the device is copied down. One of both is seldom what it seems."""
        for kind, item in shape.parts:
            if kind in (*_TENSORS, "mask") and item.accelerated and item.rank != 0:
                trust = 2 if min(target.trust, item.trust) == 2 else 0
                yield self._verdict("write.cpu_target.cuda_idx", trust, "the table is on the host"), item

    def _scalar(self, target: Value, shape: IndexShape, value: Value, stored: str) -> Iterator[Wait]:
        """A store of a Python number or a 0-dim host tensor."""
        if target.where in HOST or target.where == "meta":
            return
        trust = min(target.trust, value.trust)
        told = ""
        if target.where not in ACCELERATED:
            # a device index on a host tensor raises, so it tells where the tensor lives
            trust = min(trust, 1) if any(part.accelerated and part.rank != 0 for _, part in shape.parts) else 0
            told = ", and lives on the device, so the target does too" if trust else ""
        row, certainty, because = self._scalar_row(target, shape, stored)
        if row:
            yield self._verdict(row, min(trust, certainty), because + told), target

    def _scalar_row(self, target: Value, shape: IndexShape, stored: str) -> tuple[str, int, str]:
        """The row of the model for a store of a host scalar, how far the index decides it, and why it waits."""
        kinds = shape.kinds
        number = stored == "number"
        indexed = "write.cuda_idx.pyscalar.le214" if number else "write.cuda_idx.cpu0d"
        single = "write.int_full.pyscalar.le214" if number else "write.basic_0d.cpu0d"
        tensors = [value for kind, value in shape.parts if kind in _TENSORS]
        masks = [value for kind, value in shape.parts if kind == "mask"]
        undecided = 0 if kinds & {"any-tensor", "unknown", "integers"} else 2
        if masks and all(value.where in HOST for value in masks) and not tensors:
            row = "write.cpu_mask.pyscalar.le214" if number else "write.cpu_mask.cpu0d"
            return row, undecided, "the index is a mask on the host, beside which the scalar is copied"
        if any(value.rank == 0 and value.where in ACCELERATED for value in masks):
            return "write.cuda0d_bool", undecided, "the index is a 0-dim device mask, which is read back"
        if masks and (tensors or len(masks) > 1):
            return "write.mask_plus_index", min(undecided, 1), "a mask beside another index counts its elements"
        if masks:
            return "", 2, ""  # masked_fill with a host scalar
        if any(value.rank == 0 and value.where in ACCELERATED for value in tensors):
            row = "write.cuda0d_idx.scalar.le214" if number else indexed
            return row, undecided, "the index is a 0-dim device tensor"
        if tensors:
            decided = min(2 if v.dtype == "int" else max(v.trust, 1) for v in tensors)
            return indexed, min(undecided, decided), "the index is an integer tensor"
        sequences = [value for kind, value in shape.parts if kind == "sequence"]
        if any(isinstance(value.items, Value) and value.items.kind == "bool" for value in sequences):
            return "", 2, ""  # the upload of the mask waits, and the scalar does not
        if sequences:
            return indexed, min(undecided, 1), "the index is a sequence, which becomes an integer tensor"
        if target.rank == 0 and kinds <= {"ellipsis"}:
            return single, 2, "the tensor has no dimensions, so the whole of it is one element"
        if kinds & {"slice", "device-slice", "ellipsis", "none", "bool"}:
            return "", 2, ""
        if "integers" in kinds and len(shape.parts) == 1 and target.rank == 1:
            return indexed, 1, "the index is an integer or an integer tensor by its name"
        if target.rank is None:
            return single, 0, "every dimension may be indexed by an integer (the rank is not known)"
        if len(shape.parts) < target.rank:
            return "", 2, ""
        return single, undecided, "every dimension is indexed by an integer"

    def _device_value(self, target: Value, shape: IndexShape, value: Value) -> Iterator[Wait]:
        """A store of a device tensor: only a mask, or a 0-dim device index, must be read back for it."""
        masks = [item for kind, item in shape.parts if kind == "mask" and _on_device(item, target)]
        tensors = [item for kind, item in shape.parts if kind in _TENSORS]
        for mask in masks:
            row = "write.mask_plus_index" if tensors or len(masks) > 1 else "write.cuda_mask.cuda_value"
            row = "write.cuda0d_bool" if mask.rank == 0 else row
            trust = min(_beside(target, mask), value.trust)
            yield self._verdict(row, trust, "the places that the mask selects are counted and read back"), mask
        for item in tensors:
            if item.accelerated and item.rank == 0:
                row = "write.cuda0d_idx.nd" if value.rank != 0 else "write.cuda0d_idx.cuda0d"
                yield self._verdict(row, _beside(target, item), "a 0-dim device index is read back"), item

    def _augmented(self, target: Value, shape: IndexShape) -> Iterator[Wait]:
        """`target[index] += x`: a read and a store, so that what must be read back or copied is, twice."""
        for kind, item in shape.parts:
            yield from self._from_host(target, kind, item, "write.cpu_idx", "write.py_seq_idx")
            mask = kind == "mask" and item.accelerated
            if mask or (kind in _TENSORS and item.accelerated and item.rank == 0):
                reported = self._semantics.rows["read.cuda_mask" if mask else "read.cuda0d_idx"]["rule"]
                why = "an augmented assignment reads and stores through the index"
                trust = min(_beside(target, item), 1 if kind == "any-tensor" else 2)
                yield self._verdict("write.aug.sync_idx", trust, why, reported), item


_BASIC = frozenset({"int", "slice", "ellipsis", "none", "bool"})
_MAPPINGS = frozenset({"dict", "object", "set", "module", "class"})
"""What a 0-dim tensor may be a key of without being read."""


def _may_index(base: Value) -> bool:
    """Whether something that a device mask indexes can be a device tensor."""
    return (base.kind == "tensor" and base.where not in HOST) or base.kind == "unknown"


def _on_device(mask: Value, base: Value) -> bool:
    """Whether a mask lives on the device, or is not known and indexes a tensor that does: host masks are rare."""
    return mask.accelerated or (mask.where is None and base.accelerated)


def _beside(base: Value, item: Value) -> int:
    """How far a verdict can be trusted that rests on an index item, given what the base is."""
    return item.trust if base.kind == "tensor" and item.accelerated else min(item.trust, base.trust or 1, 1)


def _stored(value: Value) -> str | None:
    """What is stored: "number" (of Python), "cpu0d" (a 0-dim host tensor), "host" or "device" tensor, or None."""
    if value.kind in NUMBERS:
        return "number"
    if value.kind != "tensor":
        return None
    if value.where in HOST:
        return "cpu0d" if value.rank == 0 else "host"
    return "device" if value.accelerated else None
