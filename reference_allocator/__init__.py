"""A KV-cache allocator over one byte budget that never makes the host wait for the device.

Importing it touches no device. `docs/allocator_guide.md` shows how to use it. Beside the classes here there are modules
for callers: `errors`, all that is raised; `kv_pools`, buffers by layer; `recovery`, window pages for a pinned node;
`verify`, the invariants and the error word.
"""

from reference_allocator import errors, kv_pools, recovery, verify
from reference_allocator.allocator import PageAllocator
from reference_allocator.chain import join
from reference_allocator.composites import SWAComposite
from reference_allocator.specs import BytePool, Floor, KVSpec, StatePart, StateSpec
from reference_allocator.state import MambaComposite, StateSlots, SWAMambaComposite
from reference_allocator.static import StaticSWAComposite

__all__ = [
    "BytePool",
    "Floor",
    "KVSpec",
    "MambaComposite",
    "PageAllocator",
    "SWAComposite",
    "SWAMambaComposite",
    "StatePart",
    "StateSlots",
    "StateSpec",
    "StaticSWAComposite",
    "errors",
    "join",
    "kv_pools",
    "recovery",
    "verify",
]
