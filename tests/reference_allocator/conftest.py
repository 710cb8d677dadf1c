"""Where tests run, and conv states in every layout that the kernels must take.

Without `--nosync` pools lie in CPU memory. With it every test is guarded and its pools lie on the guard's device, but
for tests with the marker `host`, which are about the host.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from hypothesis import settings

from reference_allocator import fused
from reference_allocator.table_kernels import load_tables
from tests.reference_allocator.pools import Place

FOLDER = Path(__file__).parent
SIMULATED = not torch.cuda.is_available()
"""Asked before a guard is open, inside of which there always is a device."""
MOST_DRAWN = 12
"""Examples of a machine in a guarded run."""
LAYOUTS = ("dense", "page-major", "pool", "wide-rows")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Guards what is not about the host. Raises `UsageError` for what is, and does not say why."""
    for item in items:
        if item.path.is_relative_to(FOLDER):
            host = item.get_closest_marker("host")
            if host is not None and not (host.args and isinstance(host.args[0], str)):
                raise pytest.UsageError(f"{item.nodeid}: `host` without a reason")
            if host is None and config.getoption("--nosync") not in (None, "off"):
                item.add_marker("nosync")
                draw_less(item)


def draw_less(item: pytest.Item) -> None:
    """Fewer examples of what is drawn at random: there an operation takes ten times as long."""
    drawn = getattr(getattr(item, "cls", None), "settings", None)
    if drawn is not None:
        item.cls.settings = settings(drawn, max_examples=MOST_DRAWN)  # type: ignore[attr-defined]


@pytest.fixture(autouse=True)
def place(request: pytest.FixtureRequest) -> Iterator[None]:
    """Puts the pools of a guarded test on the device. The memory of a simulated one is that of the host, so that the
    kernels for the host are its kernels."""
    with pytest.MonkeyPatch.context() as patch:
        if request.node.get_closest_marker("nosync") is not None:
            patch.setattr(Place, "device", torch.device("cuda", 0))
            if SIMULATED:
                patch.setattr(fused, "load_tables", lambda *_: load_tables("cpu", None))
        yield


class State:
    """A conv state `view` of `[slots, W-1, D]` inside `whole`, which holds all bytes around it as well."""

    def __init__(self, layout: str, slots: int, history: int, channels: int) -> None:
        if layout == "dense":
            self.whole = torch.empty(slots, history, channels, dtype=torch.bfloat16)
            self.view = self.whole
        elif layout == "page-major":  # one envelope per slot, three layers inside
            self.whole = torch.empty(slots, 3, history, channels, dtype=torch.bfloat16)
            self.view = self.whole[:, 1]
        elif layout == "pool":  # entries padded to 32 bytes, the state behind another part
            entry = -(-(history * channels + 48) // 16) * 16
            self.whole = torch.empty(slots, entry, dtype=torch.bfloat16)
            self.view = self.whole.as_strided((slots, history, channels), (entry, channels, 1), 16)
        else:
            self.whole = torch.empty(slots, history, channels + 8, dtype=torch.bfloat16)
            self.view = self.whole[:, :, :channels]
        self.whole.normal_(generator=torch.Generator().manual_seed(slots * 7919 + history * 31 + channels))

    def check(self, run: Callable[[torch.Tensor], None], expect: Callable[[torch.Tensor], None]) -> None:
        """`run` on the view leaves the bytes that `expect` leaves, everywhere; on a clone it gives the same state."""
        expected, clone = self.whole.clone(), self.view.clone(memory_format=torch.contiguous_format)
        storage_offset = self.view.storage_offset() - self.whole.storage_offset()
        expect(expected.as_strided(self.view.shape, self.view.stride(), storage_offset))
        run(self.view)
        assert torch.equal(bits(self.whole), bits(expected))
        run(clone)
        assert torch.equal(bits(clone), bits(self.view))


def bits(tensor: torch.Tensor) -> torch.Tensor:
    """The bit patterns of bf16 values: equality of bits tells -0 from 0."""
    return tensor.contiguous().view(torch.int16)


@pytest.fixture(params=LAYOUTS)
def state(request: pytest.FixtureRequest) -> Callable[[int, int, int], State]:
    """Makes a conv state of so many slots, rows and channels, in one layout after the other."""
    return lambda slots, history, channels: State(str(request.param), slots, history, channels)


@pytest.fixture
def rows() -> Callable[..., torch.Tensor]:
    """Makes random bf16 rows with a padded row stride."""

    def make(count: int, channels: int, seed: int = 0) -> torch.Tensor:
        wide = torch.empty(count, channels + 8, dtype=torch.bfloat16)
        return wide.normal_(generator=torch.Generator().manual_seed(seed + 1))[:, :channels]

    return make


@pytest.fixture
def distant_slots() -> torch.Tensor:
    """A conv state of two slots, 2**32 + 64 elements apart: what is cut to 32 bits lands between the two.

    The pages in between are reserved and never touched.
    """
    reach = 2**32 + 64
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000  # MAP_NORESERVE, which Python before 3.13 does not name
    memory = mmap.mmap(-1, 2 * (reach + 192), flags=flags)
    return torch.frombuffer(memory, dtype=torch.bfloat16).as_strided((2, 3, 64), (reach, 64, 1))
