// The host's threads, which run kernels on slices of the items of a launch; the launching thread takes slices too.
//
// Slices grow until a call takes CALL_NANOSECONDS: the cost of calls is negligible, and an interrupt is handled soon.
// The last items are divided so that all threads end together. The oldest launch with items left is served first.
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "common/portable.cuh"

const i64 CALL_NANOSECONDS = 5000000;

namespace {

typedef void Entry(i64 start, i64 end, void* const* arguments);

struct Launch {
    Entry* kernel;
    void* const* arguments;
    i64 next, count;
    i64 first, max;  // items of a thread's first call, maximum items of a call
    i32 running;     // calls
    bool started;
    Launch* next_launch;
};
static_assert(sizeof(Launch) <= 64, "the memory of _Launch in readmap/backend/cpu.py");

struct Threads {
    pthread_mutex_t lock;
    pthread_cond_t work, done;
    Launch* oldest;
    i32 alive, idle;
    bool ending;
};

i64 now() {
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000ll + time.tv_nsec;
}

// Call the kernel on slices until none is left or the time `until` is reached. The caller holds the lock.
void take_slices(Threads& threads, Launch& launch, i64 until) {
    i64 concurrency = threads.alive + 1, start = now();
    i64 min_size = maximum(minimum(minimum(launch.first, launch.count / (8 * concurrency)), launch.max), (i64)1),
        size = min_size;
    while (launch.next < launch.count && start < until) {
        i64 left = launch.count - launch.next, first = launch.next;
        i64 items = minimum(maximum(minimum(size, left / (2 * concurrency)), min_size), left);
        launch.next += items;
        ++launch.running;
        pthread_mutex_unlock(&threads.lock);
        launch.kernel(first, first + items, launch.arguments);
        i64 ended = now();
        i64 fitting = (i64)((double)items * CALL_NANOSECONDS / (double)maximum(ended - start, (i64)1));
        size = maximum(minimum(minimum(fitting, 2 * size), launch.max), min_size);
        pthread_mutex_lock(&threads.lock);
        start = ended;
        --launch.running;
    }
    if (launch.next == launch.count && !launch.running) pthread_cond_broadcast(&threads.done);
}

void* work(void* given) {
    Threads& threads = *(Threads*)given;
    pthread_mutex_lock(&threads.lock);
    for (;;) {
        Launch* launch = threads.oldest;
        while (launch && launch->next == launch->count) launch = launch->next_launch;
        if (launch) {
            take_slices(threads, *launch, ~0ull >> 1);
        } else if (threads.ending) {
            break;
        } else {
            ++threads.idle;
            pthread_cond_wait(&threads.work, &threads.lock);
            --threads.idle;
        }
    }
    bool is_last = --threads.alive == 0;
    pthread_mutex_unlock(&threads.lock);
    if (is_last) free(&threads);
    return nullptr;
}

}  // namespace

// Start `count` threads besides the launching threads, fewer if the system refuses; null without memory.
extern "C" void* open_threads(i64 count) {
    Threads* threads = (Threads*)calloc(1, sizeof(Threads));
    if (!threads) return nullptr;
    pthread_mutex_init(&threads->lock, nullptr);
    pthread_cond_init(&threads->work, nullptr);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&threads->done, &monotonic);
    pthread_mutex_lock(&threads->lock);
    for (i64 i = 0; i < count; ++i) {
        pthread_t thread;
        if (pthread_create(&thread, nullptr, work, threads)) break;
        pthread_detach(thread);
        ++threads->alive;
    }
    pthread_mutex_unlock(&threads->lock);
    return threads;
}

// No launch may be running.
extern "C" void close_threads(Threads* threads) {
    pthread_mutex_lock(&threads->lock);
    threads->ending = true;
    bool is_alone = !threads->alive;
    pthread_cond_broadcast(&threads->work);
    pthread_mutex_unlock(&threads->lock);
    if (is_alone) free(threads);
}

// The caller keeps the launch and its arguments in place until end_launch has returned.
extern "C" void begin_launch(
        Threads* threads, Launch* launch, Entry* kernel, void* const* arguments, i64 count, i64 first, i64 max) {
    *launch = {kernel, arguments, 0, count, first, max, 0, true, nullptr};
    pthread_mutex_lock(&threads->lock);
    Launch** last = &threads->oldest;
    while (*last) last = &(*last)->next_launch;
    *last = launch;
    for (i64 i = minimum((i64)threads->idle, count - 1); i > 0; --i) pthread_cond_signal(&threads->work);
    pthread_mutex_unlock(&threads->lock);
}

// Take slices, and wait for slices that other threads run, until the time is up; true if all have ended.
extern "C" bool join_launch(Threads* threads, Launch* launch, i64 milliseconds) {
    i64 until = now() + milliseconds * 1000000;
    timespec moment = {until / 1000000000, until % 1000000000};
    pthread_mutex_lock(&threads->lock);
    take_slices(*threads, *launch, until);
    i32 failure = 0;
    while (launch->running && !failure) failure = pthread_cond_timedwait(&threads->done, &threads->lock, &moment);
    bool has_ended = launch->next == launch->count && !launch->running;
    pthread_mutex_unlock(&threads->lock);
    return has_ended;
}

// Drop the slices that no thread has taken, and wait for the running ones. An unstarted launch has zero bytes.
extern "C" void end_launch(Threads* threads, Launch* launch) {
    if (!launch->started) return;
    pthread_mutex_lock(&threads->lock);
    launch->next = launch->count;
    while (launch->running) pthread_cond_wait(&threads->done, &threads->lock);
    Launch** link = &threads->oldest;
    while (*link != launch) link = &(*link)->next_launch;
    *link = launch->next_launch;
    pthread_mutex_unlock(&threads->lock);
}
