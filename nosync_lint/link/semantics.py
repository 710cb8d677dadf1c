"""What synchronises: verdicts for index writes and calls, from the rows of `models/torch.toml` and a target torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nosync_lint.finding import Confidence
from nosync_lint.link.indexing import IndexShape
from nosync_lint.link.values import ACCELERATED, HOST, NUMBERS, Value
from nosync_lint.models import load


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a construct synchronises, in which target releases, and by which row of the model.

    `because` completes the sentence "this stops the host because ...". A verdict that is only `possible` rests on
    something that could not be decided, which `because` names.
    """

    row: str
    releases: tuple[str, ...]
    trust: int
    because: str = ""

    @property
    def synchronises(self) -> bool:
        return bool(self.releases)

    @property
    def confidence(self) -> Confidence:
        return (Confidence.POSSIBLE, Confidence.LIKELY, Confidence.CERTAIN)[self.trust]


SILENT = Verdict("", (), 2)


@dataclass(frozen=True, slots=True)
class CallModel:
    """A call that the model knows to synchronise: its rule, the row that says so, and the row with `dim=`."""

    rule: str
    row: str
    with_dim: str


class Semantics:
    """The rows of the model, restricted to the releases a project may run on."""

    def __init__(self, targets: Sequence[str] | None = None) -> None:
        data = load("torch")
        self.targets = tuple(targets) if targets else known_releases()
        self.rows: dict[str, Mapping[str, Any]] = {row["id"]: row for row in data["construct"]}
        self.functions: dict[str, CallModel] = {}
        self.methods: dict[str, CallModel] = {}
        for call in data["call"]:
            model = CallModel(call["rule"], call["row"], call.get("with_dim", call["row"]))
            self.functions.update(dict.fromkeys(call["functions"], model))
            self.methods.update(dict.fromkeys(call["methods"], model))
        self.call_names = frozenset(self.methods) | {name.rpartition(".")[2] for name in self.functions}

    def active(self, row: str) -> tuple[str, ...]:
        """The target releases for which a row holds."""
        since, until = self.rows[row].get("since", ""), self.rows[row].get("until", "")
        return tuple(
            release
            for release in self.targets
            if (not since or _version(release) >= _version(since))
            and (not until or _version(release) < _version(until))
        )

    def verdict(self, row: str, trust: int, because: str) -> Verdict:
        synchronises = self.rows[row]["verdict"].startswith("sync")
        return Verdict(row, self.active(row) if synchronises else (), trust, because)

    def index_write(self, target: Value, shape: IndexShape, value: Value, op: str | None) -> Verdict:
        """`target[index] = value`, or with `op` the augmented form, for a target that may live on the device."""
        if op is not None:
            return SILENT
        stored = self._stored(value)
        if stored is None or target.kind != "tensor":
            return SILENT
        if target.where in HOST or target.where == "meta":
            return SILENT
        trust = min(target.trust, value.trust)
        if target.where not in ACCELERATED:
            # a device index on a host tensor raises, so it tells where the tensor lives
            trust = min(trust, 1) if any(part.accelerated and part.rank != 0 for _, part in shape.parts) else 0
        row, certainty, because = self._write_row(target, shape, stored)
        if trust and target.where not in ACCELERATED:
            because += ", and lives on the device, so the target does too"
        return self.verdict(row, min(trust, certainty), because) if row else SILENT

    @staticmethod
    def _stored(value: Value) -> str | None:
        """What kind of host scalar is stored: "number" (of Python), "cpu0d" (a 0-dim tensor of the host), or None."""
        if value.kind in NUMBERS:
            return "number"
        if value.kind == "tensor" and value.where in HOST and value.rank == 0:
            return "cpu0d"
        return None

    def _write_row(self, target: Value, shape: IndexShape, stored: str) -> tuple[str, int, str]:
        """The row of the model for a store of a host scalar, how far the index decides it, and why it waits."""
        kinds = shape.kinds
        number = stored == "number"
        indexed = "write.cuda_idx.pyscalar.le214" if number else "write.cuda_idx.cpu0d"
        single = "write.int_full.pyscalar.le214" if number else "write.basic_0d.cpu0d"
        tensors = [value for kind, value in shape.parts if kind in ("tensor", "any-tensor")]
        masks = [value for kind, value in shape.parts if kind == "mask"]
        undecided = 0 if kinds & {"any-tensor", "unknown", "integers"} else 2
        if masks and all(value.where in HOST for value in masks) and not tensors:
            row = "write.cpu_mask.pyscalar.le214" if number else "write.cpu_mask.cpu0d"
            return row, undecided, "the index is a mask on the host, beside which the scalar is copied"
        if masks:
            return "", 2, ""  # masked_fill with a host scalar; a mask beside another index is no scalar store's fault
        if any(value.rank == 0 and value.where in ACCELERATED for value in tensors):
            row = "write.cuda0d_idx.scalar.le214" if number else indexed
            return row, undecided, "the index is a 0-dim device tensor"
        if tensors:
            return indexed, min([undecided, *(max(v.trust, 1) for v in tensors)]), "the index is an integer tensor"
        sequences = [value for kind, value in shape.parts if kind == "sequence"]
        if any(isinstance(value.items, Value) and value.items.kind == "bool" for value in sequences):
            return "", 2, ""  # the upload of the mask waits, and the scalar does not
        if sequences:
            return indexed, min(undecided, 1), "the index is a sequence, which becomes an integer tensor"
        if target.rank == 0 and kinds <= {"ellipsis"}:
            return single, 2, "the tensor has no dimensions, so the whole of it is one element"
        if kinds & {"slice", "ellipsis", "none", "bool"}:
            return "", 2, ""
        if "integers" in kinds and len(shape.parts) == 1 and target.rank == 1:
            return indexed, 1, "the index is an integer or an integer tensor by its name"
        if target.rank is None:
            return single, 0, "every dimension may be indexed by an integer (the rank is not known)"
        if len(shape.parts) < target.rank:
            return "", 2, ""
        return single, undecided, "every dimension is indexed by an integer"

    def call(self, model: CallModel, has_dim: bool, trust: int) -> Verdict:
        return self.verdict(model.with_dim if has_dim else model.row, trust, "")


def known_releases() -> tuple[str, ...]:
    """The torch releases that the model tells apart, oldest first."""
    return tuple(load("torch")["meta"]["releases"])


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".") if part.isdigit())
