/* Streams, events, kernels and graphs. Work is done when it is queued, so nothing is ever pending; what would have
 * waited is recorded. While a stream is captured, waits fail as they do on a device. */

#include <stdint.h>

#include "stub.h"

typedef struct {
    unsigned x, y, z;
} Extent; /* a dim3 */

static uintptr_t last_handle = 1 << 12;
static const void *const NOTHING = (void *)-1;
static const void *captured = (void *)-1; /* the stream that is captured, or NOTHING */
static unsigned long long captures;

static Status make(void **handle) {
    *handle = (void *)__atomic_add_fetch(&last_handle, 16, __ATOMIC_RELAXED);
    return SUCCESS;
}

static Status wait(const char *name) {
    record_wait(name);
    return captured == NOTHING ? SUCCESS : CAPTURE_UNSUPPORTED;
}

static Status note(const char *name) {
    record(name);
    return SUCCESS;
}

Status cudaDeviceSynchronize(void) { return wait(__func__); }

Status cudaStreamSynchronize(void *stream) {
    record_wait(__func__);
    return stream == captured ? CAPTURE_UNSUPPORTED : SUCCESS;
}

Status cudaEventSynchronize(void *event) {
    (void)event;
    return wait(__func__);
}

Status cudaStreamQuery(void *stream) {
    record(__func__);
    return stream == captured ? CAPTURE_UNSUPPORTED : SUCCESS;
}

Status cudaStreamCreate(void **stream) { return make(stream); }

Status cudaStreamCreateWithFlags(void **stream, unsigned flags) {
    (void)flags;
    return make(stream);
}

Status cudaStreamCreateWithPriority(void **stream, unsigned flags, int priority) {
    (void)flags, (void)priority;
    return make(stream);
}

Status cudaStreamWaitEvent(void *stream, void *event, unsigned flags) {
    (void)stream, (void)event, (void)flags;
    return note(__func__);
}

Status cudaEventCreate(void **event) { return make(event); }

Status cudaEventCreateWithFlags(void **event, unsigned flags) {
    (void)flags;
    return make(event);
}

Status cudaEventRecord(void *event, void *stream) {
    (void)event, (void)stream;
    return note(__func__);
}

Status cudaEventRecordWithFlags(void *event, void *stream, unsigned flags) {
    (void)event, (void)stream, (void)flags;
    return note(__func__);
}

Status cudaEventQuery(void *event) {
    (void)event;
    return note(__func__);
}

Status cudaEventElapsedTime(float *milliseconds, void *from, void *to) {
    (void)from, (void)to;
    *milliseconds = 1;
    return note(__func__);
}

Status cudaEventElapsedTime_v2(float *milliseconds, void *from, void *to) {
    (void)from, (void)to;
    *milliseconds = 1;
    return note(__func__);
}

Status cudaStreamAddCallback(void *stream, void (*call)(void *, Status, void *), void *data, unsigned flags) {
    (void)flags;
    record(__func__);
    call(stream, SUCCESS, data);
    return SUCCESS;
}

Status cudaLaunchHostFunc(void *stream, void (*call)(void *), void *data) {
    (void)stream;
    record(__func__);
    call(data);
    return SUCCESS;
}

/* Capture: of one stream at a time. */

Status cudaStreamBeginCapture(void *stream, int mode) {
    (void)mode;
    captured = stream;
    captures++;
    return note(__func__);
}

Status cudaStreamEndCapture(void *stream, void **graph) {
    (void)stream;
    captured = NOTHING;
    record(__func__);
    return make(graph);
}

Status cudaStreamIsCapturing(const void *stream, int *active) {
    *active = stream == captured;
    return SUCCESS;
}

/* Later parameters differ from release to release, and torch reads them for conditional nodes alone. */
static Status tell_capture(const void *stream, int *active, unsigned long long *id) {
    *active = stream == captured;
    if (id != NULL)
        *id = captures;
    return SUCCESS;
}

Status cudaStreamGetCaptureInfo(const void *stream, int *active, unsigned long long *id) {
    return tell_capture(stream, active, id);
}

Status cudaStreamGetCaptureInfo_v2(const void *stream, int *active, unsigned long long *id) {
    return tell_capture(stream, active, id);
}

Status cudaStreamGetCaptureInfo_v3(const void *stream, int *active, unsigned long long *id) {
    return tell_capture(stream, active, id);
}

Status cudaGraphLaunch(void *graph, void *stream) {
    (void)graph, (void)stream;
    return note(__func__);
}

/* Kernels: launched, and never run. All are recorded under one name. */

static Status launch(void) { return note("cudaLaunchKernel"); }

Status cudaLaunchKernel(const void *kernel, Extent grid, Extent block, void **arguments, size_t shared, void *stream) {
    (void)kernel, (void)grid, (void)block, (void)arguments, (void)shared, (void)stream;
    return launch();
}

Status __cudaLaunchKernel(const void *kernel, Extent grid, Extent block, void **arguments, size_t shared,
                          void *stream) {
    (void)kernel, (void)grid, (void)block, (void)arguments, (void)shared, (void)stream;
    return launch();
}

Status cudaLaunchCooperativeKernel(const void *kernel, Extent grid, Extent block, void **arguments, size_t shared,
                                   void *stream) {
    (void)kernel, (void)grid, (void)block, (void)arguments, (void)shared, (void)stream;
    return launch();
}

Status cudaLaunchKernelExC(const void *configuration, const void *kernel, void **arguments) {
    (void)configuration, (void)kernel, (void)arguments;
    return launch();
}

/* `kernel<<<...>>>()` pushes its configuration, and the stub of the kernel that the compiler wrote pops it. */

static __thread struct {
    Extent grid, block;
    size_t shared;
    void *stream;
} pushed;

unsigned __cudaPushCallConfiguration(Extent grid, Extent block, size_t shared, void *stream) {
    pushed.grid = grid;
    pushed.block = block;
    pushed.shared = shared;
    pushed.stream = stream;
    return SUCCESS;
}

Status __cudaPopCallConfiguration(Extent *grid, Extent *block, size_t *shared, void **stream) {
    *grid = pushed.grid;
    *block = pushed.block;
    *shared = pushed.shared;
    *stream = pushed.stream;
    return SUCCESS;
}

Status __cudaGetKernel(const void **kernel, const void *entry) {
    *kernel = entry;
    return SUCCESS;
}

/* Libraries hand in their kernels when they are loaded. */

void **__cudaRegisterFatBinary(void *binary) {
    static void *handle;
    (void)binary;
    return &handle;
}
