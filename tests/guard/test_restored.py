"""After a guard, however it ends, no attribute of torch differs: all modules and classes of torch are compared."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

COMPARE = """
import sys, types
import torch, torch.nn.parallel, torch.utils.data, torch.utils.checkpoint, torch.testing
import torch._dynamo.trace_rules, torch.compiler._cache, torch.distributed.tensor, torch.export  # what torch imports late
from nosync_lint.guard import SyncError, allow_sync, guard, to_device

net = torch.nn.Linear(3, 2)  # what torch changes by itself when it first trains
net(torch.ones(1, 3)).sum().backward()
torch.optim.AdamW(net.parameters()).step()

def owners():
    found = {}
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "torch" and isinstance(module, types.ModuleType):
            found[name] = module
            for key, value in list(vars(module).items()):
                if isinstance(value, type) and value.__module__.partition(".")[0] == "torch":
                    found[f"{value.__module__}.{value.__qualname__}"] = value
    return found

OWNERS = owners()

def attributes():
    found = {(name, key): value for name, owner in OWNERS.items() for key, value in vars(owner).items()}
    found["lift"], found["cudnn"] = torch._C._only_lift_cpu_tensors(), torch._C._get_cudnn_enabled()
    found["modes"] = torch._C._len_torch_dispatch_stack()
    found["excluded"] = str(torch._C._dispatch_tls_local_exclude_set())
    found["threads"] = torch.get_num_threads()
    found["default"] = str(torch.get_default_device())
    return found

BEFORE = attributes()
ABSENT = object()

def differences():
    after = attributes()
    changed = {}
    for key in BEFORE.keys() | after.keys():
        old, new = BEFORE.get(key, ABSENT), after.get(key, ABSENT)
        same = old is new or (type(old) in (bool, int, float, str) and old == new)
        imported = old is ABSENT and isinstance(new, types.ModuleType)
        if not same and not imported and key[-1] not in KEPT_BY_TORCH:
            changed[key] = (old, new)
    return changed

KEPT_BY_TORCH = {"__slotnames__", "__warningregistry__", "__annotations__"}
# what Python and torch remember for themselves
assert len(BEFORE) > 20000, len(BEFORE)
"""
CASES = {
    "a guard": "with guard(): torch.zeros(3, device='cuda')",
    "a wait that is refused": """
try:
    with guard():
        torch.zeros(3, device="cuda")[0] = 1
except SyncError:
    pass
""",
    "an error of the user": """
try:
    with guard(level="allow"), allow_sync(reason="x"), guard():
        raise KeyboardInterrupt
except KeyboardInterrupt:
    pass
""",
    "training": """
with guard(level="allow"):
    net = to_device(torch.nn.Linear(3, 2))
    optimizer = torch.optim.AdamW(net.parameters())
    for _ in range(2):
        torch.utils.checkpoint.checkpoint(net, torch.ones(1, 3, device="cuda"), use_reentrant=False).sum().backward()
        optimizer.step()
    torch.compile(net)(torch.ones(1, 3, device="cuda"))
    torch.cuda.set_sync_debug_mode("warn")
    torch.cuda.synchronize()
""",
    "a stand-in that cannot be put there": """
from nosync_lint.guard.patches import Patches
original, count = Patches.set, 0
def failing(self, owner, name, value):
    global count
    count += 1
    if count == FAILING:
        raise ValueError("no")
    original(self, owner, name, value)
Patches.set = failing
for FAILING in (1, 2, 50, 120):
    count = 0
    try:
        with guard():
            raise AssertionError("entered")
    except ValueError:
        pass
    assert not differences(), (FAILING, differences())
Patches.set = original
with guard(): torch.zeros(3, device="cuda")
""",
    "a device that cannot be tried": """
import nosync_lint.guard.simulated.canary as canary
from nosync_lint.guard import CannotSimulate
from nosync_lint.guard.simulated import SIMULATION
SIMULATION._works = False
canary.EXPECTED, expected = None, canary.EXPECTED
try:
    with guard():
        raise AssertionError("entered")
except CannotSimulate:
    pass
assert not differences(), differences()
canary.EXPECTED = expected
with guard(): torch.zeros(3, device="cuda")
""",
    "threads whose guards cross": """
import threading
first, second = guard(), guard()
def inner():
    second.__enter__()
    entered.set()
    left.wait()
    second.__exit__(None, None, None)
entered, left = threading.Event(), threading.Event()
first.__enter__()
thread = threading.Thread(target=inner)
thread.start()
entered.wait()
first.__exit__(None, None, None)
left.set()
thread.join()
""",
    "threads": """
import threading
def work(level):
    for _ in range(20):
        with guard(level=level):
            torch.zeros(3, device="cuda").sum().item()
threads = [threading.Thread(target=work, args=(level,)) for level in ("allow", "disallow", "log")]
for thread in threads: thread.start()
for thread in threads: thread.join()
""",
    "a thread that outlives it": """
import threading
go, done = threading.Event(), threading.Event()
def work():
    table = torch.zeros(3, device="cuda")
    done.set()
    go.wait()
    table[0] = 1
with guard():
    thread = threading.Thread(target=work)
    thread.start()
    done.wait()
go.set()
thread.join()
""",
    "a generator that outlives it": """
def numbers():
    with guard(level="allow"):
        yield torch.zeros(3, device="cuda").sum().item()
        yield 1
one = numbers()
next(one)
assert differences()
one.close()
""",
    "a generator that is dropped": """
def numbers():
    with guard(level="allow"):
        yield torch.zeros(3, device="cuda")
next(numbers())
""",
}


def test_nothing_of_torch_is_changed_by_a_guard_however_it_ends() -> None:
    """All cases in one process, because it is slow to start."""
    code = f"""{COMPARE}
for name, text in {CASES!r}.items():
    exec(text, globals())
    assert not differences(), (name, differences())
    assert not torch.cuda.is_available(), name
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]


def test_nothing_of_torch_is_changed_by_tests_that_pass_fail_and_break(tmp_path: Path) -> None:
    """The plugin's guards: around the fixtures, the test, and what is torn down."""
    (tmp_path / "conftest.py").write_text(COMPARE)
    (tmp_path / "test_it.py").write_text("""
import pytest, torch

@pytest.fixture
def broken():
    yield torch.zeros(3, device="cuda")
    raise ValueError("torn down")

@pytest.mark.nosync
def test_passes(): torch.zeros(3, device="cuda")

@pytest.mark.nosync
def test_fails(): torch.zeros(3, device="cuda")[0] = 1

@pytest.mark.nosync
def test_breaks(broken): raise KeyError

@pytest.mark.nosync
def test_skips(): pytest.skip("no")

@pytest.mark.nosync
@pytest.mark.xfail(strict=True)
def test_xfails(): torch.zeros(3, device="cuda").cpu()[0] / 0; torch.zeros(3, device="cuda")[0] = 1

@pytest.mark.nosync
@pytest.mark.usefixtures("missing")
def test_has_no_fixture(): ...

@pytest.mark.nosync(level="never")
def test_wrong(): ...
""")
    (tmp_path / "test_last.py").write_text("""
from conftest import differences

def test_nothing_differs():
    assert not differences(), differences()
""")
    command = [
        sys.executable,
        "-W",
        "ignore",
        "-m",
        "pytest",
        "-q",
        "-p",
        "nosync_lint.guard.pytest_plugin",
        "-W",
        "ignore",
    ]
    done = subprocess.run(
        [*command, "-p", "no:cacheprovider"],
        cwd=tmp_path,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "2 failed, 2 passed, 1 skipped, 1 xfailed, 3 errors" in done.stdout, done.stdout[-3000:] + done.stderr
    assert "test_nothing_differs" not in done.stdout
