/* Stands before the CUDA runtime: calls in which the host waits for the device are recorded, and handed on.
 *
 * The runtime is opened by its name when it is first needed; torch has loaded it by then. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "../stub/stub.h"

static void *behind(const char *name) {
    static void *runtime;
    if (runtime == NULL)
        runtime = dlopen(RUNTIME, RTLD_LAZY);
    void *found = runtime == NULL ? NULL : dlsym(runtime, name);
    if (found == NULL) {
        fprintf(stderr, "nosync-lint listener: no %s: %s\n", name, dlerror());
        abort();
    }
    return found;
}

#define HAND_ON(name, types, ...)                             \
    do {                                                      \
        static Status(*real) types;                           \
        if (real == NULL)                                     \
            real = (Status(*) types)behind(name);             \
        record_wait(name);                                    \
        return real(__VA_ARGS__);                             \
    } while (0)

Status cudaDeviceSynchronize(void) { HAND_ON(__func__, (void)); }

Status cudaStreamSynchronize(void *stream) { HAND_ON(__func__, (void *), stream); }

Status cudaEventSynchronize(void *event) { HAND_ON(__func__, (void *), event); }

Status cudaMemcpy(void *target, const void *source, size_t bytes, int kind) {
    HAND_ON(__func__, (void *, const void *, size_t, int), target, source, bytes, kind);
}

Status cudaMemcpy2D(void *target, size_t target_pitch, const void *source, size_t source_pitch, size_t width,
                    size_t height, int kind) {
    HAND_ON(__func__, (void *, size_t, const void *, size_t, size_t, size_t, int), target, target_pitch, source,
            source_pitch, width, height, kind);
}

Status cudaMemcpyToSymbol(const void *symbol, const void *source, size_t bytes, size_t offset, int kind) {
    HAND_ON(__func__, (const void *, const void *, size_t, size_t, int), symbol, source, bytes, offset, kind);
}

Status cudaMemcpyFromSymbol(void *target, const void *symbol, size_t bytes, size_t offset, int kind) {
    HAND_ON(__func__, (void *, const void *, size_t, size_t, int), target, symbol, bytes, offset, kind);
}
