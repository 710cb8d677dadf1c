/* What the parts of the stub runtime share. No header of CUDA is needed here: codes and handles are plain numbers. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

typedef int Status; /* a cudaError_t */

enum {
    SUCCESS = 0,
    INVALID_VALUE = 1,
    OUT_OF_MEMORY = 2,
    ALREADY_REGISTERED = 712,
    NOT_REGISTERED = 713,
    CAPTURE_UNSUPPORTED = 900,
};

/* The numbers are those of cudaMemoryType. */
typedef enum { PAGEABLE = 0, PINNED = 1, DEVICE = 2, NO_MEMORY = 3 } Memory;

/* One lock for all of the state: nothing here has to be fast. It is not taken twice by a thread. */
void lock(void);
void unlock(void);

/* Records a call, which belongs to the thread that makes it. Names are literals and are kept as they are. */
void record(const char *name);
void record_wait(const char *name);
void record_copy(const char *name, Memory target, Memory source, size_t bytes, bool waits);

/* The kind of the memory that a pointer points into. */
Memory memory_of(const void *pointer);

/* How much memory the device has. */
size_t device_bytes(void);
