// The host's threads, which take a launch of a kernel in slices of its items, the one that launches among them. No GPU has a
// use for this.
//
// Slices grow until a call takes its time: long enough for calls not to count, short enough for an interrupt to be heard.
// What is left is divided so that all end together. Of several launches the oldest that has items left goes first.
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "common/portable.cuh"

const i64 CALL_NANOSECONDS = 5000000;

namespace {

typedef void Packed(i64 begin, i64 end, void* const* arguments);

struct Launch {
    Packed* kernel;
    void* const* arguments;
    i64 next, count;
    i64 first, most;  // items of a thread's first call, and of any
    i32 running;      // calls
    bool begun;
    Launch* behind;
};
static_assert(sizeof(Launch) <= 64, "what the launching thread gives for it");

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

// Call the kernel on slices until none are left, or until a moment has come. The lock is held before and after.
void take_slices(Threads& threads, Launch& launch, i64 until) {
    i64 at_once = threads.alive + 1, began = now();
    i64 least = maximum(minimum(minimum(launch.first, launch.count / (8 * at_once)), launch.most), (i64)1),
        size = least;
    while (launch.next < launch.count && began < until) {
        i64 left = launch.count - launch.next, begin = launch.next;
        i64 items = minimum(maximum(minimum(size, left / (2 * at_once)), least), left);
        launch.next += items;
        ++launch.running;
        pthread_mutex_unlock(&threads.lock);
        launch.kernel(begin, begin + items, launch.arguments);
        i64 ended = now();
        i64 fitting = (i64)((double)items * CALL_NANOSECONDS / (double)maximum(ended - began, (i64)1));
        size = maximum(minimum(minimum(fitting, 2 * size), launch.most), least);
        pthread_mutex_lock(&threads.lock);
        began = ended;
        --launch.running;
    }
    if (launch.next == launch.count && !launch.running) pthread_cond_broadcast(&threads.done);
}

void* work(void* given) {
    Threads& threads = *(Threads*)given;
    pthread_mutex_lock(&threads.lock);
    for (;;) {
        Launch* launch = threads.oldest;
        while (launch && launch->next == launch->count) launch = launch->behind;
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

// Null where no memory is left. `count` beside those that launch, or as many as the system lets start.
extern "C" void* open_threads(i64 count) {
    Threads* threads = (Threads*)calloc(1, sizeof(Threads));
    if (!threads) return nullptr;
    pthread_mutex_init(&threads->lock, nullptr);
    pthread_cond_init(&threads->work, nullptr);
    pthread_condattr_t steady;
    pthread_condattr_init(&steady);
    pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
    pthread_cond_init(&threads->done, &steady);
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

// No launch is under way.
extern "C" void close_threads(Threads* threads) {
    pthread_mutex_lock(&threads->lock);
    threads->ending = true;
    bool is_alone = !threads->alive;
    pthread_cond_broadcast(&threads->work);
    pthread_mutex_unlock(&threads->lock);
    if (is_alone) free(threads);
}

// The launch and its arguments stay where they are until it has ended.
extern "C" void begin_launch(Threads* threads, Launch* launch, Packed* kernel, void* const* arguments, i64 count,
                             i64 first, i64 most) {
    *launch = {kernel, arguments, 0, count, first, most, 0, true, nullptr};
    pthread_mutex_lock(&threads->lock);
    Launch** last = &threads->oldest;
    while (*last) last = &(*last)->behind;
    *last = launch;
    for (i64 i = minimum((i64)threads->idle, count - 1); i > 0; --i) pthread_cond_signal(&threads->work);
    pthread_mutex_unlock(&threads->lock);
}

// Take slices and wait for those of others; whether all have ended, in so many milliseconds or sooner.
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

// Leave the slices that nobody has taken, and wait for the others: they still write to the arguments. What has not begun has
// no bytes set.
extern "C" void end_launch(Threads* threads, Launch* launch) {
    if (!launch->begun) return;
    pthread_mutex_lock(&threads->lock);
    launch->next = launch->count;
    while (launch->running) pthread_cond_wait(&threads->done, &threads->lock);
    Launch** place = &threads->oldest;
    while (*place != launch) place = &(*place)->behind;
    *place = launch->behind;
    pthread_mutex_unlock(&threads->lock);
}
