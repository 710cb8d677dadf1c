"""A KV-cache allocator over one byte budget that never makes the host wait for the device.

Importing it touches no device.
"""

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
    "join",
]
