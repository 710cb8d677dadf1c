"""What an expression is: small programs, and the value of `reveal(x)` in them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

Link = Callable[..., Any]


def said(value: Any) -> str:
    """A value in short: "device 2 int tensor, certain"; parts that are not known are left out."""
    if value.kind != "tensor":
        return str(value.kind)
    parts = [value.where, value.rank, value.dtype, "tensor"]
    return " ".join(str(part) for part in parts if part is not None) + f", {value.confidence.value}"


def cases(text: str) -> dict[str, str]:
    """Programs by the titles above them."""
    parts = re.split(r"^== (.*)\n", text, flags=re.M)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


LOCAL = {
    "torch.zeros(3, device='cuda')": "device 1 float tensor, certain",
    "torch.zeros(3, device='cuda:1')": "device 1 float tensor, certain",
    "torch.zeros(3, device=torch.device('cuda', 0))": "device 1 float tensor, certain",
    "torch.zeros(3, device='cpu')": "host 1 float tensor, certain",
    "torch.zeros(3, device='meta')": "meta 1 float tensor, certain",
    "torch.zeros(3)": "host 1 float tensor, certain",
    "torch.zeros(3, pin_memory=True)": "pinned 1 float tensor, certain",
    "torch.zeros((2, 3), dtype=torch.int32)": "host 2 int tensor, certain",
    "torch.zeros(2, 3, 4)": "host 3 float tensor, certain",
    "torch.full((2,), -1)": "host 1 int tensor, certain",
    "torch.tensor(-1)": "host 0 int tensor, certain",
    "torch.tensor([[1.0], [2.0]])": "host 2 float tensor, certain",
    "torch.arange(4)": "host 1 int tensor, certain",
    "torch.arange(0, 1, 0.1)": "host 1 float tensor, certain",
    "torch.zeros(3).cuda()": "device 1 float tensor, certain",
    "torch.zeros(3).to('cuda')": "device 1 float tensor, certain",
    "torch.zeros(3).to('cuda').to(torch.int64)": "device 1 int tensor, certain",
    "torch.zeros(3).cuda().cpu()": "host 1 float tensor, certain",
    "torch.zeros(3).pin_memory()": "pinned 1 float tensor, certain",
    "torch.zeros(3, 4).cuda() > 1": "device 2 bool tensor, certain",
    "torch.zeros(3).cuda() + 1": "device 1 float tensor, certain",
    "torch.arange(3).cuda() / 2": "device 1 float tensor, certain",
    "torch.arange(3).cuda() // 2": "device 1 int tensor, certain",
    "-torch.arange(3).cuda()": "device 1 int tensor, certain",
    "~(torch.arange(3).cuda() > 1)": "device 1 bool tensor, certain",
    "torch.zeros(3, 4).cuda()[0]": "device 1 float tensor, certain",
    "torch.zeros(3, 4).cuda()[:, 0]": "device 1 float tensor, certain",
    "torch.zeros(3, 4).cuda()[1:2]": "device 2 float tensor, certain",
    "torch.zeros(3, 4).cuda()[None]": "device 3 float tensor, certain",
    "torch.zeros(3, 4).cuda().sum()": "device 0 float tensor, certain",
    "torch.zeros(3, 4).cuda().sum(dim=1)": "device 1 float tensor, certain",
    "torch.zeros(3, 4).cuda().argmax(dim=1)": "device 1 int tensor, certain",
    "torch.zeros(3, 4).cuda().long()": "device 2 int tensor, certain",
    "torch.zeros(3, 4).cuda().T": "device 2 float tensor, certain",
    "torch.zeros(3, 4).cuda().flatten()": "device 1 float tensor, certain",
    "torch.zeros_like(torch.zeros(3).cuda())": "device 1 float tensor, certain",
    "torch.zeros(3).cuda().new_zeros((2, 2))": "device 2 float tensor, certain",
    "torch.cat([torch.zeros(3).cuda(), torch.zeros(3).cuda()])": "device 1 float tensor, certain",
    "torch.zeros(3).cuda().item()": "float",
    "torch.zeros(3).cuda().tolist()": "list",
    "torch.zeros(3).numpy()": "numpy",
    "torch.zeros(3).cuda().shape[0]": "int",
    "torch.zeros(3).cuda().size(0)": "int",
    "len(torch.zeros(3).cuda())": "int",
    "-1": "int",
    "1 / 2": "float",
    "not 1": "bool",
    "[1, 2][0]": "int",
    "'a' + 'b'": "str",
    "f'{1}'": "str",
    "None": "none",
    "range(3)": "iter",
    "[torch.zeros(3).cuda()][0]": "device 1 float tensor, certain",
    "(1, torch.zeros(3).cuda())[1]": "device 1 float tensor, certain",
    "{'a': torch.zeros(3).cuda()}['a']": "device 1 float tensor, certain",
    "torch.zeros(3).cuda() if 1 else torch.ones(3).cuda()": "device 1 float tensor, certain",
    "(lambda: torch.zeros(3).cuda())()": "device 1 float tensor, certain",
    "nothing_of_this_name": "unknown",
    "torch.no_such_function()": "unknown",
}


@pytest.mark.parametrize("text", LOCAL)
def test_a_local_expression(link: Link, text: str) -> None:
    assert said(link(f"def f():\n    reveal({text})\n").value) == LOCAL[text]


FLOW = cases(
    """
== the assignment that reaches
x = 1
x = torch.zeros(3).cuda()
reveal(x)
== through an alias
y = torch.zeros(3).cuda()
x = y
reveal(x)
== unpacked
x, y = torch.zeros(3).cuda(), 1
reveal(x)
== a loop over a list
for x in [torch.zeros(3).cuda()]:
    reveal(x)
== rows of a loop
for x in torch.zeros(2, 3).cuda():
    reveal(x)
== enumerate
for i, x in enumerate([torch.zeros(3).cuda()]):
    reveal(x)
== zip
for i, x in zip([1], [torch.zeros(3).cuda()]):
    reveal(x)
== a comprehension
xs = [torch.zeros(3).cuda() for _ in range(2)]
reveal(xs[0])
== in a comprehension
ys = [reveal(x) for x in [torch.zeros(3).cuda()]]
== a walrus
if (x := torch.zeros(3).cuda()) is not None:
    reveal(x)
== kept by a loop
x = torch.zeros(3).cuda()
for _ in range(3):
    x = x + 1
reveal(x)
== None in the other branch
x = None
if f:
    x = torch.zeros(3).cuda()
reveal(x)
== both branches
if f:
    x = torch.zeros(3).cuda()
else:
    x = torch.ones(3).cuda()
reveal(x)
== a branch that returns
x = torch.zeros(3).cuda()
if f:
    x = 1
    return
reveal(x)
== a nested function
x = torch.zeros(3).cuda()
def g():
    reveal(x)
== a module alias
t = torch
x = t.zeros(3).cuda()
reveal(x)
== a function alias
make = torch.zeros
x = make(3).cuda()
reveal(x)
== a local import
from torch import zeros as z
reveal(z(3).cuda())
"""
)


@pytest.mark.parametrize("text", FLOW.values(), ids=FLOW.keys())
def test_flow_inside_a_function(link: Link, text: str) -> None:
    indented = "".join(f"    {line}\n" for line in text.splitlines())
    assert said(link(f"def f():\n{indented}").value) == "device 1 float tensor, certain"


ACROSS = cases(
    """
== a parameter is what callers pass
def f(x):
    reveal(x)
def g():
    f(torch.zeros(3).cuda())
== by keyword
def f(a, x=None):
    reveal(x)
def g():
    f(1, x=torch.zeros(3).cuda())
== through two functions
def f(x):
    reveal(x)
def g(y):
    f(y)
def h():
    g(torch.zeros(3).cuda())
== of a method
class A:
    def f(self, x):
        reveal(x)
def g(a: A):
    a.f(torch.zeros(3).cuda())
== of a constructor
class A:
    def __init__(self, x):
        reveal(x)
A(torch.zeros(3).cuda())
== of an inherited constructor
class A:
    def __init__(self, x):
        reveal(x)
class B(A): pass
B(torch.zeros(3).cuda())
== a result
def f():
    return torch.zeros(3).cuda()
def g():
    reveal(f())
== a result of a method
class A:
    def f(self):
        return torch.zeros(3).cuda()
def g(a: A):
    reveal(a.f())
== one of two results
def f():
    return 1, torch.zeros(3).cuda()
def g():
    a, b = f()
    reveal(b)
== a result that hands a parameter on
def f(x):
    return x
def g():
    reveal(f(torch.zeros(3).cuda()))
== what a generator yields
def f():
    yield torch.zeros(3).cuda()
def g():
    for x in f():
        reveal(x)
== an attribute
class A:
    def __init__(self):
        self.x = torch.zeros(3).cuda()
    def f(self):
        reveal(self.x)
== an attribute of a base
class A:
    def __init__(self):
        self.x = torch.zeros(3).cuda()
class B(A):
    def f(self):
        reveal(self.x)
== an attribute through another object
class A:
    def __init__(self):
        self.x = torch.zeros(3).cuda()
class B:
    def __init__(self):
        self.a = A()
    def f(self):
        reveal(self.a.x)
== an attribute through an annotation
class A:
    def __init__(self):
        self.x = torch.zeros(3).cuda()
def f(a: A | None):
    reveal(a.x)
== a property
class A:
    @property
    def x(self):
        return torch.zeros(3).cuda()
    def f(self):
        reveal(self.x)
== a property that is written as well
class A:
    @property
    def x(self):
        return torch.zeros(3).cuda()
    @x.setter
    def x(self, value):
        self.y = value
    @x.deleter
    def x(self):
        del self.y
    def f(self):
        reveal(self.x)
== a property of which a subclass replaces the setter
class A:
    @property
    def x(self):
        return torch.zeros(3).cuda()
class B(A):
    @A.x.setter
    def x(self, value):
        self.y = value
    def f(self):
        reveal(self.x)
== a class attribute
class A:
    x = torch.zeros(3).cuda()
def f():
    reveal(A.x)
== a module global
X = torch.zeros(3).cuda()
def f():
    reveal(X)
== a global set elsewhere
X = None
def g():
    global X
    X = torch.zeros(3).cuda()
def f():
    reveal(X)
== a class method
class A:
    @classmethod
    def f(cls):
        return torch.zeros(3).cuda()
def g():
    reveal(A.f())
== a static method
class A:
    @staticmethod
    def f(x):
        reveal(x)
A.f(torch.zeros(3).cuda())
== a call of an object
class A:
    def __call__(self):
        return torch.zeros(3).cuda()
def f(a: A):
    reveal(a())
== forward
class A(torch.nn.Module):
    def forward(self):
        return torch.zeros(3).cuda()
def f(a: A):
    reveal(a())
== a lambda in an attribute
class A:
    def __init__(self):
        self.make = lambda: torch.zeros(3).cuda()
    def f(self):
        reveal(self.make())
== a named tuple
class A(NamedTuple):
    x: torch.Tensor
def f():
    return torch.zeros(3).cuda()
def g():
    reveal(f())
"""
)


ACROSS |= cases(
    """
== through super
class A:
    def __init__(self, x):
        reveal(x)
class B(A):
    def __init__(self, y):
        super().__init__(y)
B(torch.zeros(3).cuda())
== isinstance
class A:
    def x(self):
        return torch.zeros(3).cuda()
def f(a):
    if isinstance(a, A):
        reveal(a.x())
"""
)


@pytest.mark.parametrize(
    "text",
    [pytest.param(text, id=name) for name, text in ACROSS.items()],
)
def test_flow_between_functions(link: Link, text: str) -> None:
    assert said(link(text + "\n").value).startswith("device 1 float tensor")


DECLARED = {
    "torch.Tensor": "tensor, certain",
    "torch.LongTensor": "int tensor, certain",
    "'torch.BoolTensor'": "bool tensor, certain",
    "torch.Tensor | None": "tensor, certain",
    "Optional[torch.Tensor]": "tensor, certain",
    "Union[torch.Tensor, None]": "tensor, certain",
    "Annotated[torch.Tensor, 'rows']": "tensor, certain",
    "Ids": "tensor, certain",
    "int": "int",
    "str": "str",
    "list[int]": "list",
    "dict[str, int]": "dict",
    "tuple[int, ...]": "tuple",
    "np.ndarray": "numpy",
    "Cell": "object",
    "type[Cell]": "class",
    "nowhere.Thing": "object",
    "Callable[[int], int]": "unknown",
    "None": "none",
    "int | str": "int",
    "int | float": "number",
}


@pytest.mark.parametrize("annotation", DECLARED)
def test_what_an_annotation_declares(link: Link, annotation: str) -> None:
    text = "from typing import *\nimport numpy as np\nimport nowhere\nIds = Optional[torch.Tensor]\nclass Cell: ...\n"
    value = link(text + f"def _f(x: {annotation}):\n    reveal(x)\n").value
    assert said(value) == DECLARED[annotation]


ELEMENTS = {
    "list[torch.LongTensor]": "x[0]",
    "List[torch.LongTensor]": "x[1:][0]",
    "dict[str, torch.LongTensor]": "x['a']",
    "Dict[str, torch.LongTensor] ": "x.get('a')",
    "dict[int, torch.LongTensor]": "list(x.values())[0]",
    "tuple[int, torch.LongTensor]": "x[1]",
    "tuple[torch.LongTensor, ...]": "x[-1]",
    "Iterable[torch.LongTensor]": "[y for y in x][0]",
    "Sequence[torch.LongTensor]": "sorted(x)[0]",
    "set[torch.LongTensor]": "x.pop()",
    "list[torch.LongTensor] ": "x.pop()",
    "deque[torch.LongTensor]": "x.popleft()",
    "list[tuple[int, torch.LongTensor]]": "x[0][1]",
    "dict[int, list[torch.LongTensor]]": "x[3][0]",
    "list[torch.LongTensor]  ": "list(reversed(x))[0]",
    "list[torch.LongTensor]   ": "max(x)",
    "list[torch.LongTensor]    ": "(x + x)[0]",
    "list[torch.LongTensor]     ": "(x * 2)[0]",
    "list[torch.LongTensor]      ": "[y for y in x if y][0]",
    "dict[str, torch.LongTensor]  ": "[y for k, y in x.items()][0]",
    "dict[str, torch.LongTensor]   ": "{k: y for k, y in x.items()}['a']",
    "list[torch.LongTensor]       ": "list(zip(range(3), x))[0][1]",
    "list[torch.LongTensor]        ": "[y for i, y in enumerate(x)][0]",
}


@pytest.mark.parametrize("annotation", ELEMENTS)
def test_elements_of_declared_containers(link: Link, annotation: str) -> None:
    text = "from typing import Dict, Iterable, List, Sequence\nfrom collections import deque\n"
    value = link(text + f"def f(x: {annotation}):\n    reveal({ELEMENTS[annotation]})\n").value
    assert (value.kind, value.dtype) == ("tensor", "int")


FIELDS = cases(
    """
== a field of a dataclass
@dataclass
class A:
    n: int
    x: torch.Tensor
def f():
    reveal(A(1, torch.zeros(3).cuda()).x)
== a field by keyword
@dataclass
class A:
    x: torch.Tensor
    n: int = 0
def g():
    return A(n=1, x=torch.zeros(3).cuda())
def f(a: A):
    reveal(a.x)
== a field of a named tuple
class A(NamedTuple):
    n: int
    x: torch.Tensor
def g():
    return A(1, torch.zeros(3).cuda())
def f(a: A):
    reveal(a.x)
== a field of a base
@dataclass
class A:
    n: int
@dataclass
class B(A):
    x: torch.Tensor
def f():
    b = B(1, torch.zeros(3).cuda())
    reveal(b.x)
== an attribute set in another method
class A:
    def __init__(self):
        self.x = None
    def build(self):
        self.x = torch.zeros(3).cuda()
    def f(self):
        reveal(self.x)
== an attribute set by a subclass
class A:
    def f(self):
        reveal(self.x)
class B(A):
    def __init__(self):
        self.x = torch.zeros(3).cuda()
== a list that is filled
class A:
    def __init__(self):
        self.xs = [torch.zeros(3).cuda() for _ in range(4)]
    def f(self):
        reveal(self.xs[2])
== a dictionary that is filled
class A:
    def __init__(self):
        self.xs = {"a": torch.zeros(3).cuda()}
    def f(self, key):
        reveal(self.xs[key])
== a context manager
class A:
    def __enter__(self):
        return torch.zeros(3).cuda()
def f(a: A):
    with a as x:
        reveal(x)
== narrowed by isinstance
class A:
    def __init__(self):
        self.x = torch.zeros(3).cuda()
class B: ...
def f(a: B):
    if isinstance(a, A):
        reveal(a.x)
== narrowed to a subclass
class B: ...
class A(B):
    def __init__(self):
        self.x = torch.zeros(3).cuda()
def f(a: B):
    if not isinstance(a, A):
        return
    reveal(a.x)
== an attribute of a single family
class A:
    def __init__(self):
        self.page_owner = torch.zeros(3).cuda()
def f():
    reveal(nowhere().page_owner)
== an awaited result
async def g():
    return torch.zeros(3).cuda()
async def f():
    reveal(await g())
== a default
def f(x=torch.zeros(3).cuda()):
    reveal(x)
== a closure
def f(x):
    def g():
        reveal(x)
    return g
f(torch.zeros(3).cuda())
== a bound method
class A:
    def g(self):
        return torch.zeros(3).cuda()
def f(a: A):
    make = a.g
    reveal(make())
== a function that is decorated
@functools.cache
def g():
    return torch.zeros(3).cuda()
def f():
    reveal(g())
== a nested class
class A:
    class B:
        def __init__(self):
            self.x = torch.zeros(3).cuda()
def f():
    reveal(A.B().x)
== a module of tensors moved to the device
class A(torch.nn.Module):
    def __init__(self):
        self.x = torch.zeros(3).cuda()
def f():
    a = A().cuda()
    reveal(a.x)
"""
)
FIELDS |= cases(
    """
== a field that a class method fills
@dataclass
class A:
    x: torch.Tensor
    @classmethod
    def make(cls):
        return cls(x=torch.zeros(3).cuda())
def f(a: A):
    reveal(a.x)
== a buffer of a module
class A(torch.nn.Module):
    def __init__(self):
        self.register_buffer("x", torch.zeros(3).cuda())
def f(a: A):
    reveal(a.x)
== an attribute that is set by name
class A:
    def __init__(self):
        setattr(self, "x", torch.zeros(3).cuda())
def f(a: A):
    reveal(getattr(a, "x"))
== a list that is appended to
class A:
    def __init__(self):
        self.xs = []
    def g(self):
        self.xs.append(torch.zeros(3).cuda())
    def f(self):
        reveal(self.xs[2])
== a dictionary that is stored into
class A:
    def __init__(self):
        self.xs = {}
    def g(self):
        self.xs["a"] = torch.zeros(3).cuda()
    def f(self, key):
        reveal(self.xs[key])
== the values of a sort
def f():
    reveal(torch.zeros(3).cuda().sort().values)
== an attribute that others set
class A:
    def __init__(self):
        self.x = None
class B:
    def __init__(self, a: A):
        a.x = torch.zeros(3).cuda()
def f(a: A):
    reveal(a.x)
"""
)


@pytest.mark.parametrize(
    "text",
    [pytest.param(text, id=name) for name, text in FIELDS.items()],
)
def test_what_objects_and_containers_hold(link: Link, text: str) -> None:
    imports = "import functools\nfrom dataclasses import dataclass\nfrom typing import NamedTuple\n"
    assert said(link(imports + text).value).startswith("device 1 float tensor")


OPERATIONS = {
    "t.to(device='cuda', dtype=torch.int32)": "device 2 int tensor, certain",
    "t.cpu().to(t)": "device 2 float tensor, certain",
    "t.int()": "device 2 int tensor, certain",
    "t.bool()": "device 2 bool tensor, certain",
    "t.view(-1)": "device 1 float tensor, certain",
    "t.view(2, 3, 4)": "device 3 float tensor, certain",
    "t.reshape((2, 3))": "device 2 float tensor, certain",
    "t.unsqueeze(0)": "device 3 float tensor, certain",
    "t.transpose(0, 1)": "device 2 float tensor, certain",
    "t.max()": "device 0 float tensor, certain",
    "t.max(dim=1)[1]": "device 1 int tensor, certain",
    "t.sum(dim=1, keepdim=True)": "device 2 float tensor, certain",
    "torch.stack([t[0], t[0]])": "device 2 float tensor, certain",
    "torch.where(t > 0, t, 0.0)": "device 2 float tensor, certain",
    "t @ t": "device float tensor, certain",
    "t * torch.tensor(2.0)": "device 2 float tensor, certain",
    "t[[1, 2]]": "device float tensor, certain",
    "t[t[0].long()]": "device 2 float tensor, certain",
    "t[t > 0]": "device 1 float tensor, certain",
    "t[:, None, 0]": "device 2 float tensor, certain",
    "t[..., 0]": "device 1 float tensor, certain",
    "t.split(2)[0]": "device 2 float tensor, certain",
    "t.data": "device 2 float tensor, certain",
    "t.device": "device",
    "t.dtype": "dtype",
    "t.is_cuda": "bool",
    "t.shape": "tuple",
    "t.dim()": "int",
    "t.numpy()": "numpy",
    "t.no_such_method()": "unknown",
    "t.new_full((), 1)": "device 0 float tensor, certain",
    "torch.empty(t.shape, device=t.device)": "device float tensor, certain",
    "torch.unique(t, return_inverse=True)[1]": "device int tensor, certain",
    "torch.nonzero(t)": "device 2 int tensor, certain",
    "torch.from_numpy(a)": "host tensor, certain",
    "torch.as_tensor([1, 2], device='cuda')": "device 1 int tensor, certain",
    "torch.as_tensor([1, 2])": "host 1 int tensor, certain",
    "torch.as_tensor(3)": "host 0 int tensor, certain",
    "torch.as_tensor(a)": "tensor, likely",
    "torch.as_tensor(a, device='cuda')": "device tensor, certain",
    "torch.as_tensor([t[0, 0], t[0, 1]])": "host float tensor, certain",
    "torch.as_tensor(t)": "device 2 float tensor, certain",
    "torch.asarray((1.0, 2.0))": "host 1 float tensor, certain",
    "torch.LongTensor([1, 2])": "host 1 int tensor, certain",
    "torch.IntTensor(a)": "host int tensor, certain",
    "torch.FloatTensor(2, 3)": "host 2 float tensor, certain",
    "torch.Tensor([1.0])": "host 1 tensor, certain",
    "torch.Tensor(a)": "tensor, certain",
    "torch.Tensor(t)": "device 2 float tensor, certain",
    "torch.cuda.LongTensor([1])": "device int tensor, certain",
    "torch.nn.utils.rnn.pad_sequence([torch.tensor([1]), torch.tensor([1, 2])])": "host 2 int tensor, certain",
    "torch.nn.utils.rnn.pad_sequence([t, t])": "device 3 float tensor, certain",
    "torch.ones_like(t, device='cpu')": "host 2 float tensor, certain",
    "torch.full((2, 3), 1.5, device='cuda')": "device 2 float tensor, certain",
    "torch.linspace(0, 1, 5)": "host 1 float tensor, certain",
    "int(t.sum())": "int",
    "float(t.sum())": "float",
    "abs(t)": "device 2 float tensor, certain",
    "sum([t, t])": "device 2 float tensor, certain",
    "min(1, 2)": "int",
    "str(t)": "str",
    "isinstance(t, int)": "bool",
    "'a b'.split()[0]": "str",
    "[1, 2].index(1)": "int",
    "(1, 2).count(1)": "int",
    "print(1)": "none",
    "slice(1)": "object",
    "set([1]).union({3})": "set",
    "1 if t else 2.0": "number",
    "t is None": "bool",
    "t in [1]": "bool",
    "1 + True": "int",
    "7 // 2.0": "float",
}


@pytest.mark.parametrize("text", OPERATIONS)
def test_what_an_operation_gives(link: Link, text: str) -> None:
    value = link(f"def f():\n    t = torch.zeros(3, 4, device='cuda')\n    reveal({text})\n").value
    assert said(value) == OPERATIONS[text]


def test_a_device_that_arrives_as_a_parameter_is_taken_for_the_accelerator(link: Link) -> None:
    value = link("def f(device):\n    reveal(torch.zeros(3, device=device))\n").value
    assert said(value) == "parametrised 1 float tensor, likely"


def test_a_parameter_is_the_device_that_every_caller_gives(link: Link) -> None:
    text = "def f(device):\n    reveal(torch.zeros(3, device=device))\n"
    assert said(link(text + "f('cuda')\n").value).startswith("device")
    assert said(link(text + "f('cpu')\n").value).startswith("host")


def test_callers_that_disagree_about_the_place_prove_nothing(link: Link) -> None:
    value = link("def f(x):\n    reveal(x)\nf(torch.zeros(3))\nf(torch.zeros(3).cuda())\n").value
    assert value.kind == "tensor"
    assert value.confidence.value == "possible"


def test_a_caller_that_passes_something_unknown_costs_certainty(link: Link) -> None:
    value = link("def f(x):\n    reveal(x)\nf(torch.zeros(3).cuda())\nf(nowhere())\n").value
    assert said(value) == "device 1 float tensor, likely"


def test_the_majority_of_callers_decides_the_kind_and_costs_certainty(link: Link) -> None:
    value = link("def f(x):\n    reveal(x)\nf(torch.zeros(3).cuda())\nf(torch.ones(3).cuda())\nf('x')\n").value
    assert said(value) == "device 1 float tensor, likely"


def test_callers_in_equal_numbers_prove_nothing(link: Link) -> None:
    assert link("def f(x):\n    reveal(x)\nf(torch.zeros(3).cuda())\nf('x')\n").value.confidence.value == "possible"


def test_an_unresolved_caller_costs_certainty(link: Link) -> None:
    value = link(
        "def f(x):\n    reveal(x)\ndef g(unknown):\n    f(torch.zeros(3).cuda())\n    f(unknown.thing)\n"
    ).value
    assert said(value) == "device 1 float tensor, likely"


def test_an_annotation_alone_says_a_tensor_and_not_where(link: Link) -> None:
    value = link("def _f(x: torch.Tensor):\n    reveal(x)\n").value
    assert value.kind == "tensor"
    assert value.where is None


def test_a_tensor_argument_of_an_offered_function_lives_where_its_callers_tensors_do(link: Link) -> None:
    assert said(link("def f(x: torch.Tensor):\n    reveal(x)\n").value) == "parametrised tensor, likely"
    value = link({"data/transforms.py": "import torch\ndef f(x: torch.Tensor):\n    reveal(x)\n"}).value
    assert value.where is None


BATCHES = {
    "for batch in train_loader:\n        reveal(batch['x'])": "loaded tensor, likely",
    "for x, y in train_loader:\n        reveal(y)": "loaded tensor, likely",
    "for i, batch in enumerate(loader):\n        reveal(batch['x'])": "loaded tensor, likely",
    "for batch in loader:\n        b = batch.to('cuda')\n        reveal(b.labels)": "device tensor, likely",
    "for batch in loader:\n        b = {k: v.cuda() for k, v in batch.items()}\n        reveal(b['x'])": "device tensor, likely",
    "for batch in loader:\n        b = {k: v.cuda() for k, v in batch['input'].items()}\n        reveal(b['x'])": (
        "device tensor, likely"
    ),
    "reveal(model(x).logits)": "parametrised tensor, likely",
    "reveal(self.model(x)['logits'])": "parametrised tensor, likely",
    "reveal(model(x).logits.argmax(-1))": "parametrised int tensor, likely",
    "reveal(model(x).argmax(-1))": "parametrised int tensor, likely",
    "reveal(model(x)[0])": "parametrised tensor, likely",
    "reveal(model(x) > 0)": "parametrised bool tensor, likely",
    "reveal(torch.argmax(model(x), -1))": "parametrised int tensor, likely",
    "out, _ = model(x)\n    reveal(out)": "parametrised tensor, likely",
    "reveal(model(x).batch_size)": "int",
    "reveal(model(x).hidden_states[-1])": "parametrised tensor, likely",
    "reveal(model(x).past_key_values)": "unknown",
    "reveal(tokenizer(x, return_tensors='pt').input_ids)": "host tensor, likely",
    "reveal(tokenizer(x, return_tensors='pt').to('cuda').input_ids)": "device tensor, likely",
    "reveal(tokenizer(x).input_ids)": "unknown",
    "reveal(collate_fn(x)['labels'])": "host tensor, likely",
    "reveal(helper(x).logits)": "unknown",
    "reveal(torch.nn.Linear(3, 4)(x))": "batch",
}


@pytest.mark.parametrize("body", BATCHES)
def test_what_models_and_loaders_hand_out(link: Link, body: str) -> None:
    given = "model, loader, train_loader, tokenizer, collate_fn, helper"
    value = link(f"class T:\n  def _step(self, x, {given}):\n    {body}\n").value
    assert said(value) == BATCHES[body]


ROOTS = {
    "class M(torch.nn.Module):\n    def forward(self, x):\n        reveal(x.sum())\n": "parametrised 0 tensor, likely",
    "class M(torch.nn.Module):\n    def forward(self, batch):\n        reveal(batch['x'])\n": "parametrised tensor, likely",
    "def my_loss(logits, labels):\n    reveal(labels == 1)\n": "parametrised bool tensor, likely",
    "def _f(x):\n    reveal(x)\n": "unknown",
    "def _f(x):\n    x.unsqueeze(0)\n    reveal(x)\n": "tensor, likely",
}


@pytest.mark.parametrize("text", ROOTS)
def test_what_the_arguments_of_a_hot_root_hold(link: Link, text: str) -> None:
    assert said(link(text).value) == ROOTS[text]


FILLS = {
    "d = {}\n    d['a'] = torch.zeros(3).cuda()\n    d['n'] = 3\n    reveal(d['a'])": "device 1 float tensor, certain",
    "d = {}\n    d['a'] = torch.zeros(3).cuda()\n    d['n'] = 3\n    reveal(d['n'])": "int",
    "d = {}\n    d['a'] = torch.zeros(3).cuda()\n    reveal(d['b'])": "unknown",
    "d = {'n': 3}\n    d['a'] = torch.zeros(3).cuda()\n    reveal(d.get('a'))": "device 1 float tensor, certain",
    "r = []\n    for i in range(3):\n        r.append(torch.zeros(3).cuda())\n    reveal(r[0])": "device 1 float tensor, certain",
    "r = []\n    r.append(torch.zeros(3).cuda())\n    reveal(torch.cat(r))": "device 1 float tensor, certain",
    "a = {'x': torch.zeros(3).cuda()}\n    b = {**a, 'n': 3}\n    reveal(b['x'])": "device 1 float tensor, certain",
    "a = {'x': torch.zeros(3).cuda()}\n    b = {**a, 'n': 3}\n    reveal(b['n'])": "int",
    "rows, cols = zip(*torch.zeros(3, 2).cuda())\n    reveal(rows[0])": "device 0 float tensor, certain",
}


@pytest.mark.parametrize("body", FILLS)
def test_what_is_put_into_a_local_container(link: Link, body: str) -> None:
    assert said(link(f"def f():\n    {body}\n").value) == FILLS[body]


def test_what_a_function_makes_of_host_tensors_stays_on_the_host(link: Link) -> None:
    text = """
def running(x: torch.Tensor):
    return x.new_zeros(1) + x.cumsum(0)
def moved(x: torch.Tensor):
    return x.to("cuda")
def user():
    reveal(running(torch.zeros(3)))
    reveal(running(torch.zeros(3).cuda()))
    reveal(moved(torch.zeros(3)))
def other(x: torch.Tensor):
    running(x)
"""
    assert [value.where for value in link(text).values] == ["host", "device", "device"]


ONE_CALL = """
import torch
from torch import Tensor
def moved(tensor: Tensor, device: torch.device) -> Tensor:
    if tensor.device.type == "cpu" and device.type == "cuda":
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor.to(device, non_blocking=True)
def drawn(n: int, device: torch.device | None = None):
    return torch.randint(n, (n,), device=device)
def maybe(x: Tensor, to_host: bool = False):
    if to_host:
        return x.cpu()
    return x
def listed(x: Tensor | list):
    if isinstance(x, list):
        return x
    return x.cumsum(0)
def either(x: Tensor, other: Tensor | None = None):
    if other is None:
        return x > 0
    return other
def others(x: Tensor):
    moved(x > 0, x.device), drawn(3, x.device), maybe(x, True), listed([1]), either(x, x.long())
    moved(x.bool(), x.device), drawn(4, x.device), maybe(x.cuda(), True), listed([2]), either(x, x.long())
def user(x: Tensor):  # nosync-lint: hot
    reveal(CALL)
"""


@pytest.mark.parametrize(
    ("call", "told"),
    {
        "moved(torch.arange(4), x.device)": "parametrised 1 int tensor, likely",
        "moved(x > 0, x.device)": "parametrised bool tensor, likely",
        "drawn(3, device='cpu')": "host int tensor, certain",
        "drawn(3, 'cuda')": "device int tensor, certain",
        "drawn(3)": "host int tensor, certain",
        "maybe(x.cuda(), to_host=True)": "host tensor, likely",
        "maybe(x.cuda())": "device tensor, likely",
        "maybe(to_host=True, x=torch.zeros(2).cuda())": "host 1 float tensor, certain",
        "listed(x.cuda())": "device tensor, likely",
        "listed([3])": "list",
        "either(x.cuda())": "device bool tensor, likely",
        "either(x, torch.zeros(2).cuda())": "device 1 float tensor, certain",
    }.items(),
)
def test_what_a_short_function_gives_for_the_arguments_of_one_call(link: Link, call: str, told: str) -> None:
    assert said(link(ONE_CALL.replace("CALL", call)).value) == told


def test_a_short_function_that_calls_itself_is_taken_by_its_summary(link: Link) -> None:
    text = """
def down(x: torch.Tensor, n: int = 3):
    return down(x.cumsum(0), n - 1) if n else x
def user():
    reveal(down(torch.zeros(3).cuda(), 4))
"""
    assert link(text).value.where == "device"


def test_an_operation_is_where_its_surest_device_operand_is(link: Link) -> None:
    text = "def _f(x: torch.Tensor, device):\n    y = torch.zeros(3, device=device)\n    reveal(torch.zeros(3).cuda() + y)\n"
    assert said(link(text).value) == "device 1 float tensor, certain"


DENSE = {
    "torch.zeros(3, 4)": True,
    "torch.zeros(3, 4)[:2]": True,
    "torch.zeros(3, 4)[::2]": False,
    "torch.zeros(3, 4)[:, :2]": False,
    "torch.zeros(3, 4).t()": "reordered",
    "torch.zeros(3, 4).t().contiguous()": True,
    "torch.zeros(3, 4)[:, :2].pin_memory()": True,
}


@pytest.mark.parametrize("expr", DENSE)
def test_whether_a_tensor_fills_its_memory(link: Link, expr: str) -> None:
    assert link(f"def f():\n    reveal({expr})\n").value.dense == DENSE[expr]


def test_a_constructor_is_believed_before_an_annotation(link: Link) -> None:
    value = link("def f():\n    x: int = torch.zeros(3).cuda()\n    reveal(x)\n").value
    assert said(value) == "device 1 float tensor, certain"


def test_a_name_that_says_host_is_weak_evidence(link: Link) -> None:
    assert link("def f(lens_cpu: torch.Tensor):\n    reveal(lens_cpu)\n").value.where == "host"
    assert said(link("def f():\n    lens_cpu = torch.zeros(3).cuda()\n    reveal(lens_cpu)\n").value).startswith(
        "device"
    )


def test_a_subclass_may_decide_what_a_method_gives(link: Link) -> None:
    value = link(
        """
        class A:
            def make(self): raise NotImplementedError
            def f(self): reveal(self.make())
        class B(A):
            def make(self): return torch.zeros(3).cuda()
        """
    ).value
    assert said(value).startswith("device 1 float tensor")


CALLS = cases(
    """
== a function: main.g
def f(): g()
def g(): ...
== a method and its overrides: main.A.g, main.B.g
class A:
    def g(self): ...
class B(A):
    def g(self): ...
def f(a: A): a.g()
== of the constructed class alone: main.A.g
class A:
    def g(self): ...
class B(A):
    def g(self): ...
def f():
    a = A()
    a.g()
== the next in order through super: main.A.g
class A:
    def g(self): ...
class B(A):
    def g(self): ...
    def f(self): super().g()
== a constructor: main.A.__init__
class A:
    def __init__(self): ...
def f(): A()
== nothing of ours: nothing
import os
def f(): os.getcwd()
== a callback in an attribute: main.g
def g(): ...
class A:
    def __init__(self): self.done = g
    def f(self): self.done()
"""
)


@pytest.mark.parametrize("title", CALLS)
def test_what_a_call_may_run(link: Link, title: str) -> None:
    linked = link({"main.py": CALLS[title]})
    (caller,) = [f for f in linked.program.project.functions if f.record.name == "f"]
    site = [site for site in caller.record.calls if site.call[1] != ("name", "super")][-1]
    targets = linked.program.inference.targets(caller, site)
    found = sorted(linked.program.project.functions[target.function].name for target in targets)
    assert (", ".join(found) or "nothing") == title.partition(": ")[2]


def test_the_only_method_of_a_name_is_called_on_something_unknown(link: Link) -> None:
    linked = link("class A:\n    def recycle(self): ...\ndef f(a): a.recycle()\n")
    assert linked.callees("f", "recycle") == ["main.A.recycle"]


def test_two_unrelated_methods_of_a_name_are_not_guessed_between(link: Link) -> None:
    linked = link("class A:\n    def recycle(self): ...\nclass B:\n    def recycle(self): ...\ndef f(a): a.recycle()\n")
    assert linked.callees("f", "recycle") == []


HANDED = """
class Pool:
    def __init__(self, n, device: torch.device):
        self.table = torch.zeros(n, dtype=torch.int64, device=device)
    def pages_of(self, operation, tokens): return tokens
    def moved(self, kept): return kept
def clear(pool: Pool, kept: torch.Tensor):
    {}
    pool.table[kept] = 0
"""


@pytest.mark.parametrize(
    ("line", "confidence"),
    [
        ("pool.pages_of('clear', kept)", "likely"),
        ("pool.moved(kept)", "possible"),
        ("pool.pages_of(kept, 'clear')", "possible"),
        ("pass", "possible"),
    ],
)
def test_a_parameter_goes_by_the_names_that_it_is_handed_on_by(link: Link, line: str, confidence: str) -> None:
    program = link(HANDED.format(line)).program
    (write,) = [sync for sync in program.sites("scalar-index-write") if sync.function.record.name == "clear"]
    assert ("possible", "likely", "certain")[write.verdict.trust] == confidence


def test_a_property_is_what_it_or_an_override_gives(link: Link) -> None:
    text = """
class Spec:
    @property
    def kind(self): return "cpu"
class Cuda(Spec):
    @property
    def kind(self): return "cuda"
def f(spec: Spec, t: torch.Tensor):
    reveal(t.to(spec.kind))
"""
    assert link(text).value.where != "host"
