/* Memory: that of the device lies on the host, and a sorted table of ranges says which memory is of which kind. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "stub.h"

typedef struct {
    uintptr_t start;
    size_t bytes;
    Memory memory;
    bool ours; /* allocated here, not registered by the caller */
} Range;

static Range *ranges; /* by start; they do not overlap */
static size_t count, capacity, used;

/* The index of the first range that starts behind an address. */
static size_t behind(uintptr_t address) {
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (ranges[middle].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static Range *holding(const void *pointer) {
    uintptr_t address = (uintptr_t)pointer;
    size_t index = behind(address);
    if (index == 0 || address - ranges[index - 1].start >= ranges[index - 1].bytes)
        return NULL;
    return &ranges[index - 1];
}

static bool insert(Range range) {
    if (count == capacity) {
        size_t more = capacity ? 2 * capacity : 256;
        Range *moved = realloc(ranges, more * sizeof *ranges);
        if (moved == NULL)
            return false;
        ranges = moved;
        capacity = more;
    }
    size_t index = behind(range.start);
    memmove(ranges + index + 1, ranges + index, (count - index) * sizeof *ranges);
    ranges[index] = range;
    count++;
    return true;
}

static void delete(Range *range) {
    count--;
    memmove(range, range + 1, (size_t)(ranges + count - range) * sizeof *ranges);
}

Memory memory_of(const void *pointer) {
    lock();
    const Range *range = holding(pointer);
    Memory memory = range != NULL ? range->memory : PAGEABLE;
    unlock();
    return memory;
}

/* Half of what the host has: more could not be filled. */
size_t device_bytes(void) { return (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE) / 2; }

/* Fresh memory reads as zero and takes no room before it is written. */
static Status allocate(void **pointer, size_t bytes, Memory memory) {
    *pointer = NULL;
    if (bytes == 0)
        return SUCCESS;
    lock();
    Status status = OUT_OF_MEMORY;
    if (bytes <= device_bytes() && (memory != DEVICE || bytes <= device_bytes() - used)) {
        void *start = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (start != MAP_FAILED && insert((Range){(uintptr_t)start, bytes, memory, true})) {
            used += memory == DEVICE ? bytes : 0;
            *pointer = start;
            status = SUCCESS;
        }
    }
    unlock();
    return status;
}

static Status release(void *pointer, Memory memory) {
    if (pointer == NULL)
        return SUCCESS;
    lock();
    Range *range = holding(pointer);
    Status status = INVALID_VALUE;
    if (range != NULL && range->start == (uintptr_t)pointer && range->memory == memory && range->ours) {
        munmap(pointer, range->bytes);
        used -= memory == DEVICE ? range->bytes : 0;
        delete(range);
        status = SUCCESS;
    }
    unlock();
    return status;
}

Status cudaMalloc(void **pointer, size_t bytes) {
    record(__func__);
    return allocate(pointer, bytes, DEVICE);
}

Status cudaMallocAsync(void **pointer, size_t bytes, void *stream) {
    (void)stream;
    record(__func__);
    return allocate(pointer, bytes, DEVICE);
}

/* The real one may wait for the device; that is a matter of the allocator and counts as no wait here. */
Status cudaFree(void *pointer) {
    record(__func__);
    return release(pointer, DEVICE);
}

Status cudaFreeAsync(void *pointer, void *stream) {
    (void)stream;
    record(__func__);
    return release(pointer, DEVICE);
}

Status cudaHostAlloc(void **pointer, size_t bytes, unsigned flags) {
    (void)flags;
    record(__func__);
    return allocate(pointer, bytes, PINNED);
}

Status cudaMallocHost(void **pointer, size_t bytes) {
    record(__func__);
    return allocate(pointer, bytes, PINNED);
}

Status cudaFreeHost(void *pointer) {
    record(__func__);
    return release(pointer, PINNED);
}

Status cudaHostRegister(void *pointer, size_t bytes, unsigned flags) {
    (void)flags;
    record(__func__);
    if (pointer == NULL || bytes == 0)
        return INVALID_VALUE;
    lock();
    size_t next = behind((uintptr_t)pointer);
    bool taken = holding(pointer) != NULL || (next < count && ranges[next].start - (uintptr_t)pointer < bytes);
    Status status = taken ? ALREADY_REGISTERED : OUT_OF_MEMORY;
    if (!taken && insert((Range){(uintptr_t)pointer, bytes, PINNED, false}))
        status = SUCCESS;
    unlock();
    return status;
}

Status cudaHostUnregister(void *pointer) {
    record(__func__);
    lock();
    Range *range = holding(pointer);
    bool found = range != NULL && range->start == (uintptr_t)pointer && !range->ours;
    if (found)
        delete(range);
    unlock();
    return found ? SUCCESS : NOT_REGISTERED;
}

Status cudaHostGetDevicePointer(void **device, void *host, unsigned flags) {
    (void)flags;
    *device = host;
    return memory_of(host) == PINNED ? SUCCESS : INVALID_VALUE;
}

Status cudaMemGetInfo(size_t *left, size_t *total) {
    record(__func__);
    lock();
    *total = device_bytes();
    *left = *total - used;
    unlock();
    return SUCCESS;
}

/* How cudaPointerAttributes begins in every release. */
typedef struct {
    int memory, device;
    void *on_device, *on_host;
} Attributes;

Status cudaPointerGetAttributes(Attributes *attributes, const void *pointer) {
    enum { NO_DEVICE = -2 };
    Memory memory = memory_of(pointer);
    *attributes = (Attributes){memory, memory == PAGEABLE ? NO_DEVICE : 0, NULL, NULL};
    if (memory != PAGEABLE)
        attributes->on_device = (void *)pointer;
    if (memory != DEVICE)
        attributes->on_host = (void *)pointer;
    return SUCCESS;
}

/* Variables of kernels, which nothing runs: one block stands for all of them. */
Status cudaGetSymbolAddress(void **pointer, const void *symbol) {
    static void *block;
    (void)symbol;
    Status status = block != NULL ? SUCCESS : allocate(&block, 1 << 16, DEVICE);
    *pointer = block;
    return status;
}
