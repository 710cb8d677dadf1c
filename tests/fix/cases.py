"""The cases of `test_equivalence`: functions that a recipe fixes, with random arguments."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, NamedTuple

import torch


class Draw:
    """Random tensors and numbers: mostly what code is given, now and then what lies at its edges."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self._torch = torch.Generator().manual_seed(seed)

    def size(self, least: int = 1, most: int = 6) -> int:
        return self.random.randint(least, most)

    def ints(self, *shape: int, low: int = -9, high: int = 9, dtype: torch.dtype = torch.int64) -> torch.Tensor:
        return self._laid_out(torch.randint(low, high, shape, generator=self._torch).to(dtype))

    def floats(self, *shape: int, dtype: torch.dtype = torch.float32, plain: bool = False) -> torch.Tensor:
        made = torch.randn(shape, generator=self._torch).to(dtype)
        if made.numel() and not plain and self.random.random() < 0.2:
            made.view(-1)[self.random.randrange(made.numel())] = self.random.choice([float("nan"), float("inf"), -0.0])
        return self._laid_out(made)

    def table(self, *shape: int, dtype: torch.dtype) -> torch.Tensor:
        return self.floats(*shape, dtype=dtype) if dtype.is_floating_point else self.ints(*shape, low=0, dtype=dtype)

    def mask(self, *shape: int) -> torch.Tensor:
        return self._laid_out(torch.rand(shape, generator=self._torch) < self.random.random())

    def index(self, rows: int, *shape: int, dtype: torch.dtype = torch.int64, beyond: float = 0.05) -> torch.Tensor:
        """Places in `rows` rows, from either end and several times; once in a while one that is not there."""
        return self.ints(*shape, low=-rows, high=rows + (2 if self.random.random() < beyond else 0), dtype=dtype)

    def number(self) -> float:
        return self.random.choice(
            [0, -1, 1, 3, 255, -129, 70000, True, 0.5, 2.75, -1e4, -0.0, float("inf"), float("nan")]
        )

    def _laid_out(self, made: torch.Tensor) -> torch.Tensor:
        """The same tensor, at times with gaps between its elements."""
        return torch.stack([made, made], -1)[..., 0] if made.dim() and self.random.random() < 0.2 else made


class Case(NamedTuple):
    """A function whose first finding by `recipe` is fixed, and its random arguments by name. Those that start with
    `host` stay on the host. `dots` is what takes the place of dots that a user is to fill in."""

    recipe: str
    tier: str
    source: str
    arguments: Callable[[Draw], dict[str, Any]]
    dots: str = ""


HEAD = "import torch\nimport torch.nn.functional as F\n\n\n"


def rows(
    draw: Draw, dtype: torch.dtype = torch.int64, rank: int = 1, index: torch.dtype = torch.int64
) -> dict[str, Any]:
    """A table of a random shape, an index into its rows, and a number to store."""
    table = draw.table(draw.size(), *(draw.size() for _ in range(draw.size(0, 2))), dtype=dtype)
    shape = [draw.size(0, 4) for _ in range(rank)]
    return {"table": table, "index": draw.index(len(table), *shape, dtype=index), "value": draw.number()}


def into(dtype: str, stored: str = "value", of: str = "index") -> str:
    return f"""
        def f(table: torch.Tensor, index: torch.Tensor, value: float):
            table = table.to("cuda", torch.{dtype})
            index = index.to("cuda", torch.int64)
            table[{of}] = {stored}
            return table
    """


def trained(draw: Draw) -> dict[str, Any]:
    return {**rows(draw, torch.float32), "table": draw.floats(6, 3, plain=True).requires_grad_(), "value": draw.size()}


def grid(draw: Draw) -> dict[str, Any]:
    height, width, count = draw.size(), draw.size(), draw.size(0, 4)
    return {
        "table": draw.ints(height, width),
        "one": draw.index(height, count),
        "other": draw.index(width, draw.random.choice([count, count, 1])),
        "value": draw.number(),
    }


def element(draw: Draw, dtype: torch.dtype = torch.float32) -> dict[str, Any]:
    table = draw.table(draw.size(), dtype=dtype)
    return {"table": table, "place": draw.random.randint(-len(table) - 1, len(table)), "value": draw.number()}


def chosen(draw: Draw, dtype: torch.dtype = torch.float32) -> dict[str, Any]:
    shape = [draw.size(1, 4) for _ in range(draw.size(1, 3))]
    condition = draw.mask(*(draw.random.choice([size, size, 1]) for size in shape))
    return {"condition": condition, "x": draw.table(*shape, dtype=dtype)}


def filled(draw: Draw) -> dict[str, Any]:
    shape = [draw.size() for _ in range(draw.size(1, 3))]
    mask = draw.mask(*shape[draw.random.randint(0, 1) if len(shape) > 1 else 0 :])
    return {
        "table": draw.floats(*shape),
        "mask": mask,
        "value": draw.floats(),
        "index": draw.index(shape[0], draw.size(0, 3)),
    }


def uploaded(draw: Draw) -> dict[str, Any]:
    size = draw.size(1, 6)
    return {"host": draw.floats(size), "table": draw.floats(size + 2), "items": draw.random.choices(range(9), k=size)}


def squares(draw: Draw) -> dict[str, Any]:
    """Matrices that the functions can work on: those that they refuse are what the recipe is unsafe for."""
    made = draw.floats(draw.size(1, 4), 3, 3, plain=True)
    return {"a": made @ made.mT + 3 * torch.eye(3), "b": draw.floats(3, 2, plain=True)}


def repeated(draw: Draw) -> dict[str, Any]:
    count = draw.size(1, 5)
    return {"x": draw.floats(count, draw.size()), "lens": [draw.size(0, 3) for _ in range(count)]}


CASES = {
    "index-fill into int64": Case("index-fill", "safe", into("int64", "-1"), rows),
    "index-fill into int64 with any number": Case("index-fill", "safe", into("int64"), rows),
    "index-fill into float16": Case("index-fill", "safe", into("float16", "-1.5"), lambda draw: rows(draw, torch.float16)),
    "index-fill into float32": Case("index-fill", "safe", into("float32"), lambda draw: rows(draw, torch.float32)),
    "index-fill into bool": Case("index-fill", "safe", into("bool"), lambda draw: rows(draw, torch.bool)),
    "index-fill into uint8": Case("index-fill", "safe", into("uint8"), lambda draw: rows(draw, torch.uint8)),
    "index-fill by an index of several dimensions": Case(
        "index-fill", "safe", into("int64", "-1"), lambda draw: rows(draw, rank=draw.size(0, 3))
    ),
    "index-fill by int32": Case(
        "index-fill", "safe", into("int64", "-1").replace('"cuda", torch.int64)\n            table[', '"cuda", torch.int32)\n            table['),
        lambda draw: rows(draw, index=torch.int32),
    ),
    "index-fill in the second dimension": Case("index-fill", "safe", into("int64", of=":, index"), lambda draw: {
        "table": draw.ints(3, 5, draw.size()), "index": draw.index(5, draw.size(0, 4)), "value": draw.number()}),
    "index-fill of what is trained": Case("index-fill", "unsafe", """
        def f(table: torch.Tensor, index: torch.Tensor, value: float):
            table = (table * 2).cuda()
            index = index.to("cuda", torch.int64)
            table[index] = value
            return table * table
    """, trained),
    "index-fill by an index that may be of int32": Case("index-fill", "unsafe", """
        def f(table: torch.Tensor, index: torch.LongTensor, value: float):
            table = table.to("cuda", torch.int64)
            table[index.cuda()] = -1
            return table
    """, rows),
    "element-fill of float32": Case("element-fill", "safe", """
        def f(table: torch.Tensor, place: int, value: float):
            table = table.to("cuda", torch.float32).view(-1)
            table[place] = value
            return table
    """, element),
    "element-fill of uint8": Case("element-fill", "safe", """
        def f(table: torch.Tensor, place: int, value: float):
            table = table.to("cuda", torch.uint8).view(-1)
            table[place] = value
            return table
    """, lambda draw: element(draw, torch.uint8)),
    "element-fill by two integers": Case("element-fill", "safe", """
        def f(table: torch.Tensor, place: int):
            table = table.to("cuda", torch.float32).reshape(-1, 1)
            table[place, 0] = -1
            return table
    """, lambda draw: {key: value for key, value in element(draw).items() if key != "value"}),
    "element-fill of what is trained": Case("element-fill", "unsafe", """
        def f(table: torch.Tensor, value: float):
            table = (table * 2).reshape(-1).cuda()
            table[1] = value
            return table * table
    """, lambda draw: {"table": draw.floats(4, plain=True).requires_grad_(), "value": draw.size()}),
    "device-scalar by two indices": Case("device-scalar", "safe", """
        def f(table: torch.Tensor, one: torch.Tensor, other: torch.Tensor, value: float):
            table, one, other = table.to("cuda", torch.int64), one.to("cuda", torch.int64), other.to("cuda", torch.int64)
            table[one, other] = value
            return table
    """, grid),
    "device-scalar by an integer and an index": Case("device-scalar", "safe", """
        def f(table: torch.Tensor, one: torch.Tensor, other: torch.Tensor, value: float):
            table, other = table.to("cuda", torch.int64), other.to("cuda", torch.int64)
            table[0, other] = value
            return table
    """, grid),
    "device-scalar into float8": Case("device-scalar", "safe", """
        def f(table: torch.Tensor, index: torch.Tensor, value: float):
            short, index = table.to("cuda", torch.float8_e4m3fn), index.to("cuda", torch.int64)
            short[index] = 2.0
            return short.to(torch.float32)
    """, lambda draw: rows(draw, torch.float32)),
    "masked-fill by a 0-dim mask": Case("masked-fill", "safe", """
        def f(table: torch.Tensor, flag: torch.Tensor):
            table, flag = table.to("cuda", torch.int64), flag.to("cuda", torch.bool).reshape(())
            table[flag] = -1
            return table
    """, lambda draw: {"table": rows(draw)["table"], "flag": draw.mask()}),
    "where-number, a float beside floats": Case("where-number", "safe", """
        def f(condition: torch.Tensor, x: torch.Tensor):
            condition, x = condition.to("cuda", torch.bool), x.to("cuda", torch.float32).unsqueeze(0).reshape(x.shape[0], -1)
            return torch.where(condition.reshape(-1)[:1], x, torch.tensor(0.25))
    """, chosen),
    "where-number, an int beside floats": Case("where-number", "safe", """
        def f(condition: torch.Tensor, x: torch.Tensor):
            condition, x = condition.to("cuda", torch.bool).reshape(-1), x.to("cuda", torch.float64).reshape(-1)
            return torch.where(condition[:1], torch.tensor(1), x)
    """, lambda draw: chosen(draw, torch.float64)),
    "where-number, a float beside ints": Case("where-number", "safe", """
        def f(condition: torch.Tensor, x: torch.Tensor):
            condition, x = condition.to("cuda", torch.bool).reshape(-1), x.to("cuda", torch.int32).reshape(-1)
            return x.where(condition[:1], torch.tensor(-1.0))
    """, lambda draw: chosen(draw, torch.int32)),
    "where-number, a tensor that is read": Case("where-number", "unsafe", """
        def f(condition: torch.Tensor, x: torch.Tensor):
            condition, x, zero = condition.cuda(), x.to("cuda", torch.float32), torch.zeros(())
            return torch.where(condition, x, zero)
    """, chosen),
    "full-scalar, an int": Case("full-scalar", "safe", """
        def f(n: int):
            return torch.tensor(n, device="cuda")
    """, lambda draw: {"n": draw.random.choice([0, -7, 2**40, 2**63 - 1, True])}),
    "full-scalar, an int of a dtype": Case("full-scalar", "safe", """
        def f(n: int):
            return torch.tensor(n, dtype=torch.int32, device="cuda")
    """, lambda draw: {"n": draw.random.choice([0, -7, 2**31 - 1, 12])}),
    "full-scalar, a float": Case("full-scalar", "safe", """
        def f(x):
            return torch.tensor(1.5, device="cuda") * x
    """, lambda draw: {"x": draw.floats(3)}),
    "full-scalar, any float": Case("full-scalar", "unsafe", """
        def f(x: float):
            return torch.tensor(x, device="cuda")
    """, lambda draw: {"x": float(draw.number())}),
    "full-scalar, a list of one": Case("full-scalar", "safe", """
        def f(n: int):
            return torch.as_tensor([n], device="cuda")
    """, lambda draw: {"n": draw.size()}),
    "full-scalar, a number that is moved": Case("full-scalar", "safe", """
        def f(x: torch.Tensor):
            x = x.to("cuda", torch.float32)
            return torch.tensor(0.5).to(x.device) + x
    """, lambda draw: {"x": draw.floats(3)}),
    "full-scalar, like another": Case("full-scalar", "safe", """
        def f(x: torch.Tensor, n: float):
            return x.to("cuda", torch.int32).new_tensor(n)
    """, lambda draw: {"x": draw.ints(3, dtype=torch.int32), "n": draw.random.choice([1, -3, 2.75, True])}),
    "pinned-staging of a list": Case("pinned-staging", "unsafe", """
        def f(items: list[int]):
            return torch.tensor(items, device="cuda", dtype=torch.int64)
    """, lambda draw: {"items": uploaded(draw)["items"]}),
    "pinned-staging by to": Case("pinned-staging", "unsafe", """
        def f(host: torch.Tensor):
            return (host.cpu() + 1).to("cuda")
    """, lambda draw: {"host": uploaded(draw)["host"]}),
    "pinned-staging by cuda": Case("pinned-staging", "unsafe", """
        def f(host: torch.Tensor):
            host = host.cpu().mul(2)
            return host.cuda()
    """, lambda draw: {"host": uploaded(draw)["host"]}),
    "pinned-staging by copy_": Case("pinned-staging", "unsafe", """
        def f(table: torch.Tensor, host: torch.Tensor):
            table, host = table.to("cuda", torch.float32), host.cpu()
            return table[2:].copy_(host)
    """, lambda draw: {"table": (given := uploaded(draw))["table"], "host": given["host"]}),
    "pinned-staging of a store": Case("pinned-staging", "unsafe", """
        def f(table: torch.Tensor, host: torch.Tensor):
            table, host = table.to("cuda", torch.float32), host.cpu().reshape(-1)
            table[2:] = host
            return table
    """, lambda draw: {"table": (given := uploaded(draw))["table"], "host": given["host"]}),
    "pinned-staging of a copy that is asynchronous": Case("pinned-staging", "unsafe", """
        def f(host: torch.Tensor):
            host = host.cpu().mul(2)
            return host.to("cuda", non_blocking=True)
    """, lambda draw: {"host": uploaded(draw)["host"]}),
    "pinned-index, read": Case("pinned-index", "unsafe", """
        def f(table: torch.Tensor, host: torch.Tensor):
            table, host = table.to("cuda", torch.float32), host.to("cpu", torch.int64).reshape(-1)
            return table[host]
    """, lambda draw: {"table": (table := draw.floats(draw.size(), 2)), "host": draw.index(len(table), draw.size(0, 4))}),
    "pinned-index, stored": Case("pinned-index", "unsafe", """
        def f(table: torch.Tensor, host: torch.Tensor, value: torch.Tensor):
            table, host = table.to("cuda", torch.float32), host.to("cpu", torch.int64).reshape(-1)
            table[:, host] = value.to("cuda", torch.float32)
            return table
    """, lambda draw: {"table": draw.floats(2, 4), "host": draw.index(4, draw.size(0, 4)), "value": draw.floats()}),
    "pinned-index, a list": Case("pinned-index", "unsafe", """
        def f(table: torch.Tensor, items: list[int]):
            table = table.to("cuda", torch.float32)
            return table[items]
    """, lambda draw: {"table": draw.floats(9, 2), "items": [*uploaded(draw)["items"], 0]}),
    "pinned-index, a mask": Case("pinned-index", "unsafe", """
        def f(table: torch.Tensor, host: torch.Tensor):
            table, host = table.to("cuda", torch.int64), host.to("cpu", torch.bool)
            table[host] = -1
            return table
    """, lambda draw: {"table": (table := draw.ints(draw.size())), "host": draw.mask(len(table))}),
    "range-slice, stored": Case("range-slice", "unsafe", """
        def f(table: torch.Tensor, low: int, high: int, value: torch.Tensor):
            table = table.to("cuda", torch.float32)
            table[range(low, high)] = value.to("cuda", torch.float32)
            return table
    """, lambda draw: {"table": draw.floats(5, 2), "low": draw.size(0, 3), "high": draw.size(3, 5), "value": draw.floats(2)}),
    "where-device-value, a copy": Case("where-device-value", "safe", """
        def f(table: torch.Tensor, mask: torch.Tensor, value: torch.Tensor):
            table, value = table.to("cuda", torch.float32), value.to("cuda", torch.float32).reshape(())
            return table.masked_fill(mask.cuda(), value)
    """, lambda draw: {key: value for key, value in filled(draw).items() if key != "index"}),
    "where-device-value, in place": Case("where-device-value", "safe", """
        def f(table: torch.Tensor, mask: torch.Tensor, value: torch.Tensor):
            table, value = table.to("cuda", torch.float32), value.to("cuda", torch.float32).reshape(())
            return table.masked_fill_(mask.cuda(), value)
    """, lambda draw: {key: value for key, value in filled(draw).items() if key != "index"}),
    "where-device-value, and gradients": Case("where-device-value", "safe", """
        def f(table: torch.Tensor, mask: torch.Tensor, value: torch.Tensor):
            table, value = table.to("cuda", torch.float32) * 2, value.to("cuda", torch.float32).reshape(()) * 3
            table.masked_fill_(mask.cuda(), value)
            return table * table
    """, lambda draw: {"table": draw.floats(4, 3, plain=True).requires_grad_(), "mask": draw.mask(4, 3),
                       "value": draw.floats(plain=True).requires_grad_()}),
    "where-device-value, by a mask as index": Case("where-device-value", "safe", """
        def f(table: torch.Tensor, mask: torch.Tensor, value: torch.Tensor):
            table, value = table.to("cuda", torch.float32).reshape(-1), value.to("cuda", torch.float32).reshape(())
            mask = mask.to("cuda", torch.bool).reshape(-1)
            table[mask] = value
            return table
    """, lambda draw: {"table": (table := draw.floats(draw.size(0, 6))), "mask": draw.mask(len(table)), "value": draw.floats()}),
    "put-device-value, a copy": Case("put-device-value", "safe", """
        def f(table: torch.Tensor, index: torch.Tensor, value: torch.Tensor):
            table, value = table.to("cuda", torch.float32), value.to("cuda", torch.float32).reshape(())
            return table.index_fill(0, index.to("cuda", torch.int64).reshape(-1), value)
    """, lambda draw: {key: value for key, value in filled(draw).items() if key != "mask"}),
    "put-device-value, in place": Case("put-device-value", "safe", """
        def f(table: torch.Tensor, index: torch.Tensor, value: torch.Tensor):
            table, value = table.to("cuda", torch.float32), value.to("cuda", torch.float32).reshape(())
            return table.index_fill_(0, index.to("cuda", torch.int64).reshape(-1), value)
    """, lambda draw: {key: value for key, value in filled(draw).items() if key != "mask"}),
    "put-device-value, by a device index": Case("put-device-value", "safe", """
        def f(table: torch.Tensor, index: torch.Tensor, value: torch.Tensor):
            table, value = table.to("cuda", torch.float32), value.to("cuda", torch.float32).reshape(())
            first = index.to("cuda", torch.int64).reshape(())
            table[first] = value
            return table
    """, lambda draw: {"table": (table := draw.floats(draw.size(), 2)), "index": draw.index(len(table), 1), "value": draw.floats()}),
    "index-select": Case("index-select", "unsafe", """
        def f(table: torch.Tensor, index: torch.Tensor):
            table, first = table.to("cuda", torch.float32), index.to("cuda", torch.int64).reshape(())
            return table[first] + 0
    """, lambda draw: {"table": (table := draw.floats(draw.size(), 2)), "index": draw.ints(1, low=0, high=len(table))}),
    "device-reduction, the larger of two": Case("device-reduction", "unsafe", """
        def f(x: torch.Tensor, y: torch.Tensor):
            x, y = x.to("cuda", torch.float32).reshape(()), y.to("cuda", torch.float32).reshape(())
            return max(x, y) + 0
    """, lambda draw: {"x": draw.floats(1, plain=True), "y": draw.floats(1, plain=True)}),
    "device-reduction, at least a number": Case("device-reduction", "unsafe", """
        def f(x: torch.Tensor):
            x = x.to("cuda", torch.float32).reshape(())
            return x + max(x, 0.5)
    """, lambda draw: {"x": draw.floats(1, plain=True)}),
    "device-reduction, the smallest": Case("device-reduction", "unsafe", """
        def f(x: torch.Tensor):
            x = x.to("cuda", torch.float32).reshape(-1)
            return min(x) + 0
    """, lambda draw: {"x": draw.floats(draw.size(2), plain=True)}),
    "device-reduction, any": Case("device-reduction", "unsafe", """
        def f(x: torch.Tensor):
            x = x.to("cuda", torch.float32).reshape(-1)
            return torch.stack([torch.as_tensor(any(x > 0)).cpu()])
    """, lambda draw: {"x": draw.floats(draw.size(3, 9))}),
    "unchecked-linalg, inv": Case("unchecked-linalg", "unsafe", """
        def f(a: torch.Tensor):
            return torch.linalg.inv(a.to("cuda", torch.float32))
    """, lambda draw: {"a": squares(draw)["a"]}),
    "unchecked-linalg, inverse": Case("unchecked-linalg", "unsafe", """
        def f(a: torch.Tensor):
            return a.to("cuda", torch.float32).inverse()
    """, lambda draw: {"a": squares(draw)["a"].requires_grad_()}),
    "unchecked-linalg, cholesky": Case("unchecked-linalg", "unsafe", """
        def f(a: torch.Tensor):
            return torch.linalg.cholesky(a.to("cuda", torch.float32), upper=True)
    """, lambda draw: {"a": squares(draw)["a"]}),
    "unchecked-linalg, solve": Case("unchecked-linalg", "unsafe", """
        def f(a: torch.Tensor, b: torch.Tensor):
            return torch.linalg.solve(a.to("cuda", torch.float32), b)
    """, squares),
    "unchecked-linalg, lu_factor": Case("unchecked-linalg", "unsafe", """
        def f(a: torch.Tensor):
            factors, pivots = torch.linalg.lu_factor(a.to("cuda", torch.float32))
            return factors, pivots
    """, lambda draw: {"a": squares(draw)["a"]}),
    "batched-reads": Case("batched-reads", "display", """
        def f(x: torch.Tensor, y: torch.Tensor):
            low, high = x.to("cuda", torch.float32).reshape(()), y.to("cuda", torch.float32).reshape(())
            first = low.item()
            second = high.item()
            return torch.tensor([first, second])
    """, lambda draw: {"x": draw.floats(1), "y": draw.floats(1)}),
    "hoisting": Case("hoisting", "display", """
        def f(table: torch.Tensor):
            for _ in range(3):
                step = torch.tensor([1, 2, 3], device="cuda")
                table += step
            return table
    """, lambda draw: {"table": draw.ints(3)}),
    "num-classes": Case("num-classes", "display", """
        def f(x: torch.Tensor):
            return F.one_hot(x.to("cuda", torch.int64))
    """, lambda draw: {"x": torch.cat([draw.ints(draw.size(0, 5), low=0, high=7), torch.tensor([6])])}, dots="7"),
    "output-size of a list": Case("output-size", "safe", """
        def f(x: torch.Tensor, lens: list[int]):
            return torch.repeat_interleave(x.cuda(), torch.tensor(lens, device="cuda"), dim=0)
    """, repeated),
    "output-size": Case("output-size", "display", """
        def f(x: torch.Tensor, lens: list[int], total: int):
            counts = torch.tensor(lens).cuda()
            return x.cuda().repeat_interleave(counts, dim=0)
    """, lambda draw: {**(given := repeated(draw)), "total": sum(given["lens"])}, dots="total"),
}  # fmt: skip
