"""What the fields of a batch are: by their names, by what is asked of them, and by what they are compared with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Link = Callable[..., Any]

FIELDS = {
    "reveal(batch['labels'])": "tensor likely",
    "reveal(batch['anything'])": "tensor possible",
    "reveal(batch.anything)": "tensor possible",
    "reveal(batch[0])": "tensor possible",
    "reveal(batch['a']['b'])": "tensor possible",
    "reveal(batch['a'][0])": "tensor possible",
    "reveal(batch['a'] + 1)": "tensor possible",
    "reveal(-batch['a'])": "tensor possible",
    "reveal(batch['a'] > 1)": "tensor possible",
    "reveal(batch['a'] + batch['b'])": "tensor possible",
    "reveal(batch['a'] + batch['labels'])": "tensor likely",
    "reveal((batch['a'] > 1).any())": "tensor likely",
    "reveal(batch['a'].mean())": "tensor likely",
    "reveal(batch['a'])\n        batch['a'].mean()": "tensor likely",
    "reveal(batch['a'])\n        kept = batch['a'].shape": "tensor likely",
    "reveal(batch['a'])\n        torch.cat([batch['a'], batch['b']])": "tensor likely",
    "reveal(batch['a'])\n        self.layer(batch['a'])": "tensor likely",
    "reveal(batch['a'])\n        self.other(batch['a'])": "tensor possible",
    "reveal(batch['a'])\n        torch.full((3,), batch['a'])": "tensor possible",
    "reveal(batch['a'])\n        kept = batch['a'] @ batch['b']": "tensor likely",
    "keep = batch['a'] > 1\n        reveal(batch['b'])\n        batch['b'][keep]": "tensor likely",
    "keep = batch['a'] > 1\n        reveal(batch['a'])\n        batch['b'][keep]": "tensor likely",
    "reveal(batch['a'].split(','))": "unknown",
    "reveal(batch['a'] == 'x')": "bool",
    "reveal(batch['a'] == None)": "bool",
    "reveal(batch['a'])\n        kept = batch['a'] == 'x'": "unknown",
    "reveal(batch['a'])\n        kept = batch['a'] in ('x', 'y')": "unknown",
    "reveal(batch['a'])\n        kept = batch['a'] == Mode.ON": "unknown",
    "reveal(batch.get('a'))": "tensor possible",
    "reveal(batch.get('a', 1))": "int",
    "reveal(batch.get('a', 1.0))": "float",
    "reveal(batch.pop('a', True))": "bool",
    "reveal(batch.get('a', 'x'))": "str",
    "reveal(batch.get('labels', None))": "tensor likely",
    "one, two = batch\n        reveal(two)": "tensor possible",
    "one, labels = batch\n        reveal(labels)": "tensor likely",
    "one, num_tokens = batch\n        reveal(num_tokens)": "int likely",
    "a = batch['a'].to('cuda')\n        reveal(a)": "tensor likely",
    "for a in batch['a']:\n            reveal(a)": "tensor possible",
    "for a in batch['a']:\n            reveal(a)\n            a.mean()": "tensor likely",
}


def _said(value: Any) -> str:
    return (
        f"{value.kind} {value.confidence.value}" if value.kind in ("tensor", "int") and value.trust < 2 else value.kind
    )


@pytest.mark.parametrize("body", FIELDS)
def test_what_a_field_of_a_batch_is(link: Link, body: str) -> None:
    text = f"""
from enum import Enum
class Mode(Enum):
    ON = 1
class M(torch.nn.Module):
    def other(self, a): ...
    def forward(self, batch):
        {body}
"""
    assert _said(link(text).value) == FIELDS[body]


DECLARED = {
    "batch": "tensor likely",
    "batch: dict": "tensor likely",
    "batch: dict[str, torch.Tensor]": "tensor likely",
    "batch: dict[str, torch.Tensor | Any]": "tensor likely",
    "batch: dict[str, Any]": "tensor possible",
}


@pytest.mark.parametrize("parameter", DECLARED)
def test_a_name_tells_nothing_of_a_field_that_is_declared_to_be_anything(link: Link, parameter: str) -> None:
    text = f"from typing import Any\nclass M(torch.nn.Module):\n    def forward(self, {parameter}):\n"
    assert _said(link(text + "        reveal(batch['labels'])\n").value) == DECLARED[parameter]


def test_every_field_of_a_batch_of_declared_tensors_is_one(link: Link) -> None:
    text = "class M(torch.nn.Module):\n    def forward(self, batch: dict[str, torch.Tensor]):\n        reveal(batch['a'])\n"
    assert _said(link(text).value) == "tensor likely"


RECORDS = {
    "reveal(meta.lens)": "parametrised likely",
    "reveal(meta.lens_cpu)": "host likely",
    "reveal(meta.made)": "host certain",
    "reveal(pair[0])": "parametrised likely",
    "reveal(rest[0])": "parametrised likely",
    "reveal(more['x'])": "parametrised likely",
    "reveal(own.lens)": "None certain",
    "reveal(meta.copied)": "None certain",
    "reveal(meta.sent)": "None certain",
}


@pytest.mark.parametrize("body", RECORDS)
def test_tensors_in_an_argument_live_where_tensor_arguments_do(link: Link, body: str) -> None:
    text = f"""
from dataclasses import dataclass
@dataclass
class Meta:
    lens: torch.Tensor
    lens_cpu: torch.Tensor
    made: torch.Tensor
    is_prefill: bool
    copied: torch.Tensor
    sent: torch.Tensor
    def fetch(self):
        self.copied = staged(self.copied)
def send(meta):
    meta.sent = staged(meta.sent)
def make(x):
    return Meta(lens=x, made=torch.zeros(3))
class Own:
    lens: torch.Tensor
    def __init__(self, lens: torch.Tensor):
        self.lens = lens
class M(torch.nn.Module):
    def forward(self, q, meta: Meta, own: Own, pair: tuple[torch.Tensor, int], *rest: torch.Tensor, **more: torch.Tensor):
        {body}
"""
    value = link(text).value
    assert value.kind == "tensor"
    assert f"{value.where} {value.confidence.value}" == RECORDS[body]


def test_a_record_that_is_handed_on_keeps_where_its_tensors_live(link: Link) -> None:
    text = """
from dataclasses import dataclass
@dataclass
class Meta:
    lens: torch.Tensor
def step(meta: Meta):
    _inner(meta)
def _inner(meta: Meta):
    reveal(meta.lens)
def _unused(meta: Meta):
    reveal(meta.lens)
"""
    assert [value.where for value in link(text).values] == ["parametrised", None]


def test_a_model_that_may_be_an_output_has_no_tensors_for_settings(link: Link) -> None:
    text = """
def f(held):
    reveal(held.setting)
def g(model, module: torch.nn.Module):
    f(model(1))
    f(module)
"""
    assert _said(link(text).value) == "tensor possible"
