"""How often a line runs: roots, cold stops, rare blocks, and the chain that explains a hot line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Link = Callable[..., Any]


def heats(linked: Any) -> dict[str, str]:
    """The heat of every function body, by its short name."""
    program = linked.program
    return {
        function.record.qualname: program.heat.heat(function, 0).value
        for function in program.project.functions
        if function.record.form == "function"
    }


def heat(linked: Any, name: str) -> str:
    return heats(linked)[name]


ROOTS = {
    "a marker on the line": ("def step(): pass  # nosync-lint: hot", "step"),
    "a marker above": ("# nosync-lint: hot\ndef step(): pass", "step"),
    "a marker above a decorator": ("# nosync-lint: hot\n@wraps\ndef step(): pass", "step"),
    "a marker inside": ("def step():\n    # nosync-lint: hot\n    x = 1", "step"),
    "freeing": ("def free_pages(pages):\n    x = 1", "free_pages"),
    "forward of a module": ("class A(torch.nn.Module):\n    def forward(self):\n        x = 1", "A.forward"),
    "forward of a module's subclass": (
        "class A(torch.nn.Module): pass\nclass B(A):\n    def forward(self):\n        x = 1", "B.forward",
    ),
    "a method of a pool": ("class P:\n    def alloc(self): return 1\n    def free(self, x): return 2", "P.free"),
    "a method of a pool by inheritance": (
        "class P:\n    def alloc(self): return 1\nclass Q(P):\n    def release(self, x): return 2", "Q.release",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "name"), ROOTS.values(), ids=ROOTS.keys())
def test_a_function_is_a_hot_root(link: Link, text: str, name: str) -> None:
    assert heat(link(text + "\n"), name) == "hot"


POOL = "class P:\n    def alloc(self): return 1\n    def free(self, x): return 2\n"
NO_ROOTS = {
    "a plain function": ("def compute():\n    x = 1", "compute", "unreached"),
    "a class that only frees": ("class P:\n    def free(self, x): return 2", "P.free", "unreached"),
    "forward of something else": ("class A:\n    def forward(self):\n        x = 1", "A.forward", "unreached"),
    "a declaration": ("class P:\n    def alloc(self): ...\n    def free(self): ...", "P.free", "unreached"),
    "a constructor": ("class P:\n    def __init__(self):\n        x = 1", "P.__init__", "cold"),
    "loading": ("def load_weights():\n    x = 1", "load_weights", "cold"),
    "capture": ("class R:\n    def capture_graph(self):\n        x = 1", "R.capture_graph", "cold"),
    "clearing a pool": (POOL + "    def clear(self): return 1", "P.clear", "cold"),
    "marked cold": (POOL.rstrip() + "  # nosync-lint: cold at exit", "P.free", "cold"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "name", "expected"), NO_ROOTS.values(), ids=NO_ROOTS.keys())
def test_a_function_is_no_hot_root(link: Link, text: str, name: str, expected: str) -> None:
    assert heat(link(text + "\n"), name) == expected


CHAIN = """
def step():  # nosync-lint: hot
    middle()
def middle():
    leaf()
    load_more()
def leaf():
    x = 1
def load_more():
    below_cold()
def below_cold():
    x = 1
def beside():
    leaf()
"""


def test_heat_follows_calls_and_stops_at_cold_functions(link: Link) -> None:
    assert heats(link(CHAIN)) == {
        "step": "hot", "middle": "hot", "leaf": "hot",
        "load_more": "cold", "below_cold": "unreached", "beside": "unreached",
    }  # fmt: skip


def test_the_chain_leads_from_the_root_to_the_line(link: Link) -> None:
    linked = link(CHAIN)
    root, hops = linked.program.heat.chain(linked.function("leaf"), 10, "here")
    assert root == "main.step"
    assert [(hop.row, hop.note) for hop in hops] == [
        (4, "hot root `step` (marked hot)"), (5, "calls `middle`"), (7, "calls `leaf`"), (10, "here"),
    ]  # fmt: skip
    assert linked.program.heat.chain(linked.function("beside"), 15, "here") == (None, ())


def test_the_shortest_chain_is_told(link: Link) -> None:
    linked = link("def a():  # nosync-lint: hot\n    b()\n    c()\ndef b(): c()\ndef c(): d()\ndef d(): ...\n")
    _, hops = linked.program.heat.chain(linked.function("d"), 8, "here")
    assert [hop.note for hop in hops[1:-1]] == ["calls `c`", "calls `d`"]


@pytest.mark.parametrize("name", ["step", "main.step", "Loop.turn", "main.Loop.turn", "Lo*.tu*", "Base.turn"])
def test_a_root_is_given_by_name_or_by_its_end(link: Link, name: str) -> None:
    text = "class Base:\n    def turn(self): ...\nclass Loop(Base):\n    def turn(self): leaf()\n"
    text += "def step(): leaf()\ndef leaf(): ...\n"
    assert heat(link(text, hot=(name,)), "leaf") == "hot"
    assert link(text, hot=(name,)).program.unmatched_roots == ()


@pytest.mark.parametrize("name", ["tep", "Loop.step", "other.step", "main", "Loop"])
def test_a_root_that_names_nothing_is_told(link: Link, name: str) -> None:
    linked = link("class Loop:\n    def turn(self): ...\ndef step(): ...\n", hot=(name, "step"))
    assert linked.program.unmatched_roots == (name,)


def test_a_given_root_is_hot_though_its_name_is_cold(link: Link) -> None:
    text = "def warmup(): leaf()\ndef leaf(): ...\n"
    assert heat(link(text), "warmup") == "cold"
    assert heats(link(text, hot=("warmup",))) == {"warmup": "hot", "leaf": "hot"}


def test_a_given_cold_function_stops_heat(link: Link) -> None:
    assert heat(link(CHAIN, cold=("middle",)), "leaf") == "unreached"


def test_a_program_knows_whether_it_has_a_root(link: Link) -> None:
    assert link(CHAIN).program.has_roots
    assert not link("def f(): ...\n").program.has_roots


BLOCKS = {
    "plain": ("if self.ready:", None),
    "a debug flag": ("if self.debug_mode:", "debug"),
    "a debug switch of the environment": ("if envs.SERVE_DEBUG_POOL.get():", "debug"),
    "not debugging": ("if not self.debug:", None),
    "another platform": ("if is_npu():", "platform"),
    "another platform by attribute": ("if current_platform.is_xpu():", "platform"),
    "not another platform": ("if not is_npu():", None),
    "this platform": ("if is_cuda():", None),
    "not this platform": ("if not is_cuda():", "platform"),
    "this or another": ("if is_cuda() or is_npu():", None),
}


@pytest.mark.parametrize(("test", "expected"), BLOCKS.values(), ids=BLOCKS.keys())
def test_a_block_is_rare_by_its_condition(link: Link, test: str, expected: str | None) -> None:
    linked = link(f"def f(self):\n    {test}\n        reveal(1)\n")
    function = linked.function("f")
    (site,) = [site for site in function.record.calls if site.call[1] == ("name", "reveal")]
    assert linked.program.roots.rare_block(function, site.block) == expected


def test_the_else_of_this_platform_is_another_one(link: Link) -> None:
    linked = link("def f():\n    if is_cuda():\n        pass\n    else:\n        reveal(1)\n")
    function = linked.function("f")
    (site,) = [site for site in function.record.calls if site.call[1] == ("name", "reveal")]
    assert linked.program.roots.rare_block(function, site.block) == "platform"


def test_calls_in_rare_blocks_do_not_carry_heat(link: Link) -> None:
    text = "def step():  # nosync-lint: hot\n    if is_npu():\n        a()\n    if debug:\n        b()\n    c()\n"
    text += "def a(): ...\ndef b(): ...\ndef c(): ...\n"
    found = heats(link(text))
    assert (found["a"], found["b"], found["c"]) == ("unreached", "unreached", "hot")


def test_modules_of_tests_and_of_other_platforms_are_left_out(link: Link) -> None:
    linked = link({"pkg/__init__.py": "", "pkg/pool.py": POOL, "pkg/npu/pool.py": POOL, "pkg/tests/pool.py": POOL})
    free = [function for function in linked.program.project.functions if function.record.name == "free"]
    found = {function.module.name: linked.program.heat.heat(function, 0).value for function in free}
    assert found == {"pkg.pool": "hot", "pkg.npu.pool": "unreached", "pkg.tests.pool": "cold"}


def test_a_preset_applies_where_its_package_is_imported(link: Link) -> None:
    worker = "class Worker:\n    def execute_model(self):\n        return 1\n"
    assert heat(link({"main.py": worker}), "Worker.execute_model") == "unreached"
    assert heat(link({"main.py": "import vllm\n" + worker}), "Worker.execute_model") == "hot"


def test_lambdas_are_as_hot_as_the_function_they_stand_in(link: Link) -> None:
    linked = link("def step():  # nosync-lint: hot\n    return lambda: 1\n")
    (function,) = [f for f in linked.program.project.functions if f.record.form == "lambda"]
    assert linked.program.heat.heat(function, 0).value == "hot"
    root, chain = linked.program.heat.chain(function, 2, "here")
    assert root == "main.step"
    assert [hop.row for hop in chain] == [3, 2]


def test_calls_that_were_not_resolved_are_counted(link: Link) -> None:
    linked = link(
        """
        def step(x):  # nosync-lint: hot
            leaf()
            x.leaf()
            print(1)
        class A:
            def leaf(self): ...
        class B:
            def leaf(self): ...
        def leaf(): ...
        """
    )
    assert linked.program.call_counts == (0, 0)
    assert linked.program.heat is not None
    assert linked.program.call_counts == (1, 1)


def test_reading_a_property_runs_it(link: Link) -> None:
    text = """
class Table:
    @property
    def rows(self):
        return refresh(self)
    @property
    def size(self):
        return self.n
def refresh(table): ...
def step(table: Table):  # nosync-lint: hot
    return table.rows.sum() + table.size
"""
    linked = link(text)
    heat = linked.program.heat
    assert {f.record.name for f in linked.program.project.functions if f.number in heat.hot} == {
        "step",
        "rows",
        "refresh",
    }
    _, hops = heat.chain(linked.function("refresh"), 10, "here")
    assert [hop.note.partition("`")[2].rstrip("`") for hop in hops[1:3]] == ["Table.rows", "refresh"]


def test_what_a_request_runs_is_warm_unless_a_step_runs_it_too(link: Link) -> None:
    text = """
class Engine:
    def add_request(self):
        prepare(); shared()
    def step(self):  # nosync-lint: hot
        shared()
def prepare(): ...
def shared(): ...
"""
    linked = link(text)
    heats = {name: linked.program.heat.heat(linked.function(name), 0).value for name in ("prepare", "shared")}
    assert heats == {"prepare": "warm", "shared": "hot"}
    root, hops = linked.program.heat.chain(linked.function("prepare"), 7, "here")
    assert root is not None
    assert root.endswith("Engine.add_request")
    assert "warm root" in hops[0].note


def test_a_chain_tells_the_loops_it_goes_through(link: Link) -> None:
    text = """
def inner(): ...
def step():  # nosync-lint: hot
    for a in range(3):
        while a:
            inner()
    inner()
"""
    linked = link(text)
    block = len(linked.function("step").record.blocks) - 1
    _, hops = linked.program.heat.chain(linked.function("step"), 6, "here", block)
    assert hops[-1].note == "here, in 2 nested loops"
    _, hops = linked.program.heat.chain(linked.function("inner"), 2, "here")
    assert [hop.note for hop in hops[1:]] == ["calls `inner`, in 2 nested loops", "here"]


RARE = {
    "if bad:\n        raise ValueError(x.item())": "error",
    "raise ValueError(x.item())": "error",
    "assert x, x.item()": "error",
    "if not torch.cuda.is_available():\n        x.item()": "platform",
    "if debug_mode:\n        x.item()": "debug",
    "if bad:\n        x.item()": None,
}


@pytest.mark.parametrize("body", RARE)
def test_which_blocks_run_rarely(link: Link, body: str) -> None:
    linked = link(f"def step(x, bad, debug_mode):  # nosync-lint: hot\n    {body}\n")
    function = linked.function("step")
    (site,) = [site for site in function.record.calls if site.call[1][-1] == "item"]
    assert linked.program.roots.rare_block(function, site.block) == RARE[body]


DEVICE_CODE = """
import triton
import triton.language as tl
@triton.jit
def kernel(x):
    helper(x)
def helper(x):
    if x: ...
@triton.jit
def other(x):
    def inner(y): ...
def host(x): ...
"""


def test_what_is_compiled_for_the_device_never_runs_on_the_host(link: Link) -> None:
    linked = link(DEVICE_CODE)
    elsewhere = linked.program.roots.elsewhere
    names = {f.record.name for f in linked.program.project.functions if f.record.form == "function" and elsewhere(f)}
    assert names == {"kernel", "helper", "other", "inner"}


IMPLICIT = {
    "a call of the instance": ("__call__", "o()"),
    "a call of a parameter": ("__call__", "given(1)"),
    "a loop": ("__iter__", "for _ in o: pass"),
    "the steps of a loop": ("__next__", "for _ in stepped: pass"),
    "a comprehension": ("__iter__", "x = [y for y in o]"),
    "a list": ("__iter__", "x = list(o)"),
    "membership": ("__contains__", "x = 3 in o"),
    "entering": ("__enter__", "with o: pass"),
    "leaving": ("__exit__", "with o: pass"),
    "a manager that is made there": ("__exit__", "with O(): pass"),
    "a manager under a name": ("__exit__", "with O() as x: pass"),
    "a manager in an attribute": ("__exit__", "with held.o: pass"),
    "an operator": ("__add__", "x = o + 1"),
    "an operator of the other side": ("__radd__", "x = 1 + o"),
    "an operator in place": ("__iadd__", "o += 1"),
    "a comparison": ("__lt__", "x = o < 1"),
    "a sign": ("__neg__", "x = -o"),
    "the length": ("__len__", "x = len(o)"),
    "an item": ("__getitem__", "x = o[0]"),
    "a store": ("__setitem__", "o[0] = 1"),
    "a truth test": ("__bool__", "if o: pass"),
    "a negated test": ("__bool__", "x = not o"),
    "a conversion": ("__int__", "x = int(o)"),
}


@pytest.mark.parametrize(("method", "statement"), IMPLICIT.values(), ids=IMPLICIT.keys())
def test_heat_follows_special_methods(link: Link, method: str, statement: str) -> None:
    text = f"""
class O:
    def {method}(self, *args):
        return len(args)
class Stepped:
    def __iter__(self): return self
    def __next__(self): return 1
class Held:
    def __init__(self): self.o = O()
def step(given: O, held: Held):  # nosync-lint: hot
    o, stepped = O(), Stepped()
    {statement}
"""
    name = "Stepped" if "stepped" in statement else "O"
    assert heat(link(text), f"{name}.{method}") == "hot"


def test_the_truth_of_an_instance_is_its_length_where_it_has_nothing_else(link: Link) -> None:
    text = "class O:\n    def __len__(self): return 1\ndef step():  # nosync-lint: hot\n    if O(): pass\n"
    assert heat(link(text), "O.__len__") == "hot"


@pytest.mark.parametrize(
    "statement", ["x = o + 1", "o[0] = 1", "with o: pass", "for x in o: pass", "x = len(o)", "o()"]
)
def test_special_methods_of_what_is_not_known_stay_cold(link: Link, statement: str) -> None:
    methods = ("__add__", "__getitem__", "__enter__", "__exit__", "__iter__", "__len__", "__call__")
    body = "\n".join(f"    def {method}(self, *args): return 1" for method in methods)
    found = heats(link(f"class O:\n{body}\ndef step(o):  # nosync-lint: hot\n    {statement}\n"))
    assert {found[f"O.{method}"] for method in methods} == {"unreached"}


def test_a_store_does_not_read_the_item(link: Link) -> None:
    text = """
class O:
    def __getitem__(self, i): return 1
    def __setitem__(self, i, value): pass
def step(o: O):  # nosync-lint: hot
    o[0] = 1
"""
    assert heat(link(text), "O.__getitem__") == "unreached"


def test_the_call_tree_shows_special_methods(link: Link) -> None:
    text = """
class Timer:
    def __enter__(self): return self
    def __exit__(self, *args): torch.cuda.synchronize()
def step():  # nosync-lint: hot
    with Timer():
        x = 1
"""
    program = link(text).program
    names = {name.record.qualname: name for name in program.project.functions}
    assert [callee.record.qualname for _, callee in program.heat.calls(names["step"])] == [
        "Timer.__enter__",
        "Timer.__exit__",
    ]
