/* Copies and fills really happen, at once. Which of them make the host wait is what the documentation of the runtime
 * says under "API synchronization behavior": a copy without a stream, unless it stays on the device, and a fill of
 * memory of the host. */

#include <string.h>

#include "stub.h"

static long given = -1;

/* Small reads of device memory give this value from now on, as no kernel has computed one; -1: what is there. */
void nosync_stub_reads_give(long value) { given = value; }

static void copy(const char *name, void *target, const void *source, size_t bytes, bool waits) {
    Memory into = memory_of(target), from = memory_of(source);
    record_copy(name, into, from, bytes, waits && (into != DEVICE || from != DEVICE));
    memmove(target, source, bytes);
    if (given >= 0 && from == DEVICE && into != DEVICE && bytes <= sizeof given)
        memcpy(target, &given, bytes);
}

Status cudaMemcpy(void *target, const void *source, size_t bytes, int kind) {
    (void)kind;
    copy(__func__, target, source, bytes, true);
    return SUCCESS;
}

Status cudaMemcpyAsync(void *target, const void *source, size_t bytes, int kind, void *stream) {
    (void)kind, (void)stream;
    copy(__func__, target, source, bytes, false);
    return SUCCESS;
}

Status cudaMemcpyPeerAsync(void *target, int to, const void *source, int from, size_t bytes, void *stream) {
    (void)to, (void)from, (void)stream;
    copy(__func__, target, source, bytes, false);
    return SUCCESS;
}

static void copy_rows(const char *name, char *target, size_t target_pitch, const char *source, size_t source_pitch,
                      size_t width, size_t rows, bool waits) {
    Memory into = memory_of(target), from = memory_of(source);
    record_copy(name, into, from, width * rows, waits && (into != DEVICE || from != DEVICE));
    for (size_t row = 0; row < rows; row++)
        memmove(target + row * target_pitch, source + row * source_pitch, width);
}

Status cudaMemcpy2D(void *target, size_t target_pitch, const void *source, size_t source_pitch, size_t width,
                    size_t rows, int kind) {
    (void)kind;
    copy_rows(__func__, target, target_pitch, source, source_pitch, width, rows, true);
    return SUCCESS;
}

Status cudaMemcpy2DAsync(void *target, size_t target_pitch, const void *source, size_t source_pitch, size_t width,
                         size_t rows, int kind, void *stream) {
    (void)kind, (void)stream;
    copy_rows(__func__, target, target_pitch, source, source_pitch, width, rows, false);
    return SUCCESS;
}

/* Variables of kernels hold nothing: the copy is recorded and not made. */
Status cudaMemcpyToSymbol(const void *symbol, const void *source, size_t bytes, size_t offset, int kind) {
    (void)symbol, (void)offset, (void)kind;
    Memory from = memory_of(source);
    record_copy(__func__, DEVICE, from, bytes, from != DEVICE);
    return SUCCESS;
}

Status cudaMemcpyToSymbolAsync(const void *symbol, const void *source, size_t bytes, size_t offset, int kind,
                               void *stream) {
    (void)symbol, (void)offset, (void)kind, (void)stream;
    record_copy(__func__, DEVICE, memory_of(source), bytes, false);
    return SUCCESS;
}

Status cudaMemset(void *target, int value, size_t bytes) {
    Memory into = memory_of(target);
    record_copy(__func__, into, NO_MEMORY, bytes, into != DEVICE);
    memset(target, value, bytes);
    return SUCCESS;
}

Status cudaMemsetAsync(void *target, int value, size_t bytes, void *stream) {
    (void)stream;
    record_copy(__func__, memory_of(target), NO_MEMORY, bytes, false);
    memset(target, value, bytes);
    return SUCCESS;
}
