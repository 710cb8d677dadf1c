/* The recorder: what each thread called since it was told to forget, and how often it waited. */

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "stub.h"

enum { MOST_CALLS = 1 << 20 }; /* of a thread that nobody tells to forget; what comes later is only counted */

typedef struct {
    const char *name;
    Memory target, source;
    size_t bytes;
    bool waits;
    unsigned long order; /* over all threads */
} Call;

typedef struct Thread {
    Call *calls;
    size_t count, capacity, lost;
    unsigned long waits;
    char *text; /* what was last given out */
    bool ended;
    struct Thread *next;
} Thread;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_key_t key;
static Thread *threads;
static unsigned long next_order;

void lock(void) { pthread_mutex_lock(&mutex); }
void unlock(void) { pthread_mutex_unlock(&mutex); }

static void end(void *thread) {
    lock();
    ((Thread *)thread)->ended = true;
    unlock();
}

/* A process that forks while another thread holds the lock must not pass it on locked. */
__attribute__((constructor)) static void start(void) {
    pthread_key_create(&key, end);
    pthread_atfork(lock, unlock, unlock);
}

static void *grown(void *memory, size_t bytes) {
    memory = realloc(memory, bytes);
    if (memory == NULL) {
        fputs("nosync-lint stub runtime: no memory left for the record\n", stderr);
        abort();
    }
    return memory;
}

/* The record of this thread. The lock is held. */
static Thread *own(void) {
    Thread *thread = pthread_getspecific(key);
    if (thread == NULL) {
        thread = grown(NULL, sizeof *thread);
        *thread = (Thread){.next = threads};
        threads = thread;
        pthread_setspecific(key, thread);
    }
    return thread;
}

static void keep(Thread *thread, Call call) {
    if (thread->count == MOST_CALLS) {
        thread->lost++;
        return;
    }
    if (thread->count == thread->capacity) {
        thread->capacity = thread->capacity ? 2 * thread->capacity : 64;
        thread->calls = grown(thread->calls, thread->capacity * sizeof *thread->calls);
    }
    thread->calls[thread->count++] = call;
}

void record_copy(const char *name, Memory target, Memory source, size_t bytes, bool waits) {
    lock();
    Thread *thread = own();
    keep(thread, (Call){name, target, source, bytes, waits, next_order++});
    thread->waits += waits;
    unlock();
}

void record(const char *name) { record_copy(name, NO_MEMORY, NO_MEMORY, 0, false); }
void record_wait(const char *name) { record_copy(name, NO_MEMORY, NO_MEMORY, 0, true); }

/* Whether a thread is asked about: all of them, or the one that asks. */
static bool asked(const Thread *thread, const Thread *asking, int all) { return all || thread == asking; }

/* Forget what this thread did, or all threads. Threads that have ended are then dropped. */
void nosync_stub_forget(int all) {
    lock();
    Thread *asking = own();
    for (Thread **at = &threads; *at != NULL;) {
        Thread *thread = *at;
        if (asked(thread, asking, all)) {
            thread->count = thread->lost = 0;
            thread->waits = 0;
        }
        if (all && thread->ended) {
            *at = thread->next;
            free(thread->calls);
            free(thread->text);
            free(thread);
        } else {
            at = &thread->next;
        }
    }
    unlock();
}

/* How often this thread waited since it forgot, or all threads. */
unsigned long nosync_stub_waits(int all) {
    unsigned long waits = 0;
    lock();
    Thread *asking = own();
    for (Thread *thread = threads; thread != NULL; thread = thread->next)
        waits += asked(thread, asking, all) ? thread->waits : 0;
    unlock();
    return waits;
}

/* How many calls were made that the record had no room for. */
unsigned long nosync_stub_lost(int all) {
    unsigned long lost = 0;
    lock();
    Thread *asking = own();
    for (Thread *thread = threads; thread != NULL; thread = thread->next)
        lost += asked(thread, asking, all) ? thread->lost : 0;
    unlock();
    return lost;
}

static int by_order(const void *left, const void *right) {
    unsigned long a = ((const Call *)left)->order, b = ((const Call *)right)->order;
    return (a > b) - (a < b);
}

/* The calls of this thread since it forgot, or those of all threads in order, one a line: name, kinds of the target
 * and of the source (- without), bytes, and whether the host waits. The text is valid until the thread asks again. */
const char *nosync_stub_calls(int all) {
    static const char *const kinds[] = {"pageable", "pinned", "device", "-"};
    lock();
    Thread *asking = own();
    size_t count = 0, at = 0, bytes;
    for (Thread *thread = threads; thread != NULL; thread = thread->next)
        count += asked(thread, asking, all) ? thread->count : 0;
    Call *calls = grown(NULL, (count + 1) * sizeof *calls);
    for (Thread *thread = threads; thread != NULL; thread = thread->next)
        for (size_t one = 0; asked(thread, asking, all) && one < thread->count; one++)
            calls[at++] = thread->calls[one];
    qsort(calls, count, sizeof *calls, by_order);

    free(asking->text);
    FILE *out = open_memstream(&asking->text, &bytes);
    for (size_t one = 0; one < count; one++) {
        const Call *call = &calls[one];
        fprintf(out, "%s %s %s %zu %d\n", call->name, kinds[call->target], kinds[call->source], call->bytes, call->waits);
    }
    fclose(out);
    free(calls);
    unlock();
    return asking->text;
}
