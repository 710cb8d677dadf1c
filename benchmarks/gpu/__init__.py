"""What only a GPU can tell of the reference allocator: `benchmarks/gpu/run.sh` measures it all in one go.

The functions that measure take a device, so that tests run them on a CPU, where nothing overlaps and nothing waits.
"""
