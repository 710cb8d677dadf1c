"""The package as a whole: its README runs, importing it touches no device, and the linter has nothing to say."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from reference_allocator.costs import README

pytestmark = pytest.mark.host("reads the text of the package")

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "reference_allocator"
BLOCKING = [
    "allocator",
    "band",
    "composites",
    "end_band",
    "error_word",
    "float_band",
    "kv_pools",
    "naive",
    "pooled",
    "recovery",
    "state",
    "static",
    "streams",
    "token_allocator",
    "two_sides",
    "verify",
]
"""Modules whose public functions each say whether they block; `tables` says it once for all."""
EXAMPLE = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)[0]


def test_the_example_runs() -> None:
    names: dict[str, object] = {}
    exec(compile(EXAMPLE, str(README), "exec"), names)
    assert names["cache"].full.band.live == 0  # type: ignore[attr-defined]
    assert EXAMPLE.endswith("assert verify.verify(cache) == []\n")
    assert len([line for line in EXAMPLE.splitlines() if line]) == 10


def test_importing_touches_no_device() -> None:
    code = (
        "import torch, sys\n"
        "def touched(*_, **__): sys.exit('a device was touched')\n"
        "torch.cuda._lazy_init = torch.cuda.is_available = torch.cuda.device_count = touched\n"
        "from torch.utils._python_dispatch import TorchDispatchMode\n"
        "class Nothing(TorchDispatchMode):\n"
        "    def __torch_dispatch__(self, func, types, args=(), kwargs=None): sys.exit(f'{func} ran')\n"
        "with Nothing(): import reference_allocator, reference_allocator.verify, reference_allocator.recovery\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr


def findings(*arguments: str) -> list[str]:
    """Places and codes that the linter reports for the package."""
    done = subprocess.run(
        [sys.executable, "-m", "nosync_lint", "check", "--no-cache", "-j", "1", "--heat", "any", *arguments],
        cwd=ROOT, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode in (0, 1), done.stderr
    return re.findall(r"^(reference_allocator/\S+?\.py):\d+:\d+: (NSL\d+)", done.stdout, re.MULTILINE)


def test_the_linter_is_silent_on_all_but_the_bad_example() -> None:
    assert findings("reference_allocator", "--exclude", "reference_allocator/naive.py") == []


def test_the_linter_finds_every_wait_of_the_bad_example() -> None:
    codes = [code for place, code in findings("reference_allocator") if place.endswith("naive.py")]
    assert sorted(codes) == ["NSL101", "NSL101", "NSL103", "NSL202", "NSL202", "NSL301", "NSL501", "NSL502"]


def test_the_map_names_every_module() -> None:
    named = {
        name for line in README.read_text(encoding="utf-8").splitlines() for name in re.findall(r"`(\w+\.py)`", line)
    }
    assert named == {path.name for path in PACKAGE.glob("*.py")} - {"__init__.py"}


def test_what_only_a_gpu_runs_is_listed_by_name() -> None:
    """Whatever uses a device or a stream of CUDA."""
    on_cuda = set()
    for path in PACKAGE.glob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            owner = f"{node.name}." if isinstance(node, ast.ClassDef) else ""
            for inner in node.body if isinstance(node, ast.ClassDef) else [node]:
                if isinstance(inner, ast.FunctionDef) and "torch.cuda." in "\n".join(map(ast.unparse, inner.body)):
                    on_cuda.add(f"{path.stem}.{owner}{inner.name}")
    listed = (ROOT / "docs" / "gpu.md").read_text(encoding="utf-8").partition("## What only a GPU runs")[2]
    assert set(re.findall(r"^\| `([\w.]+)`", listed, re.MULTILINE)) == on_cuda


def imports_of(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    names = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "reference_allocator"
        for alias in node.names
    }
    return {name.removeprefix("reference_allocator.") for name in found | names}


def test_imports_point_up_the_map() -> None:
    rows = [
        line for line in README.read_text(encoding="utf-8").splitlines() if line.startswith("| `") and ".py`" in line
    ]
    order = {name: at for at, line in enumerate(rows) for name in re.findall(r"`(\w+)\.py`", line)}
    for name, at in order.items():
        down = {other for other in imports_of(PACKAGE / f"{name}.py") if order.get(other, -1) > at}
        assert down == set(), name


@pytest.mark.parametrize("module", BLOCKING)
def test_public_functions_say_whether_they_block(module: str) -> None:
    """Or that they are host arithmetic, or which other function says it."""
    missing = []
    for node in ast.walk(ast.parse((PACKAGE / f"{module}.py").read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            text = ast.get_docstring(node) or ""
            says = re.search(r"[Bb]lock|[Hh]ost only|[Ss]ee `|[Aa]s `", text)
            missing += [] if says else [node.name]
    assert missing == []
