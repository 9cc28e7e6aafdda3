/* A preloaded library that fails calls on files of one folder. Environment variables:

     ATTACK_FOLDER  the prefix of the paths of the files
     ATTACK_CALL    read, write or fsync; ATTACK_FAULT: the number of an error, or short
     ATTACK_AT      index of the first call that fails; ATTACK_TIMES: the number of failing calls, 0 for all
     ATTACK_BYTES   instead: bytes that can be written before the disk is full
*/
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static atomic_long calls, written;

static const char* setting(const char* name) {
    const char* value = getenv(name);
    return value ? value : "";
}

static int is_in_folder(int descriptor) {
    const char* folder = setting("ATTACK_FOLDER");
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = *folder ? readlink(link, path, sizeof path - 1) : -1;
    return length > 0 && !strncmp(path, folder, strlen(folder));
}

/* Return the number of bytes that a call on `size` bytes may process, or -1 to fail with errno set. */
static ssize_t allowed(const char* call, int descriptor, size_t size) {
    int saved = errno;
    int in_folder = is_in_folder(descriptor);
    errno = saved;
    if (!in_folder) return (ssize_t)size;
    const char* bytes = setting("ATTACK_BYTES");
    if (*bytes) {
        if (strcmp(call, "write")) return (ssize_t)size;
        long room = atol(bytes) - atomic_fetch_add(&written, (long)size);
        if (room >= (long)size) return (ssize_t)size;
        if (room > 0) return room;
        errno = ENOSPC;
        return -1;
    }
    if (strcmp(call, setting("ATTACK_CALL"))) return (ssize_t)size;
    long number = atomic_fetch_add(&calls, 1), first = atol(setting("ATTACK_AT")), times = atol(setting("ATTACK_TIMES"));
    if (number < first || (times && number >= first + times)) return (ssize_t)size;
    const char* fault = setting("ATTACK_FAULT");
    if (!strcmp(fault, "short")) return size > 1 ? (ssize_t)(size / 2) : (ssize_t)size;
    errno = atoi(fault);
    return -1;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define GUARD(call, count)                                  \
    ssize_t max_size = allowed(call, descriptor, count);        \
    if (max_size < 0) return -1;

ssize_t read(int descriptor, void* target, size_t count) {
    GUARD("read", count)
    return REAL(read)(descriptor, target, (size_t)max_size);
}

ssize_t pread(int descriptor, void* target, size_t count, off_t offset) {
    GUARD("read", count)
    return REAL(pread)(descriptor, target, (size_t)max_size, offset);
}

ssize_t pread64(int descriptor, void* target, size_t count, off64_t offset) {
    GUARD("read", count)
    return REAL(pread64)(descriptor, target, (size_t)max_size, offset);
}

ssize_t preadv(int descriptor, const struct iovec* parts, int count, off_t offset) {
    GUARD("read", parts[0].iov_len)
    return count == 1 ? REAL(pread)(descriptor, parts[0].iov_base, (size_t)max_size, offset)
                      : REAL(preadv)(descriptor, parts, count, offset);
}

ssize_t preadv64(int descriptor, const struct iovec* parts, int count, off64_t offset) {
    return preadv(descriptor, parts, count, offset);
}

ssize_t write(int descriptor, const void* data, size_t count) {
    GUARD("write", count)
    return REAL(write)(descriptor, data, (size_t)max_size);
}

ssize_t pwrite(int descriptor, const void* data, size_t count, off_t offset) {
    GUARD("write", count)
    return REAL(pwrite)(descriptor, data, (size_t)max_size, offset);
}

ssize_t pwrite64(int descriptor, const void* data, size_t count, off64_t offset) {
    GUARD("write", count)
    return REAL(pwrite64)(descriptor, data, (size_t)max_size, offset);
}

ssize_t writev(int descriptor, const struct iovec* parts, int count) {
    size_t size = 0;
    for (int i = 0; i < count; ++i) size += parts[i].iov_len;
    GUARD("write", size)
    return (size_t)max_size == size ? REAL(writev)(descriptor, parts, count)
                                : REAL(write)(descriptor, parts[0].iov_base,
                                              (size_t)max_size < parts[0].iov_len ? (size_t)max_size : parts[0].iov_len);
}

/* NumPy writes arrays with fwrite; the C library's own calls of write are not intercepted. */
size_t fwrite(const void* data, size_t size, size_t count, FILE* stream) {
    size_t total = size * count;
    const char* fault = setting("ATTACK_FAULT");
    if (!strcmp(fault, "short") || atoi(fault) == EINTR) return REAL(fwrite)(data, size, count, stream); /* fwrite retries */
    ssize_t max_size = allowed("write", fileno(stream), total);
    if (max_size < 0) return 0;
    size_t done = REAL(fwrite)(data, 1, (size_t)max_size, stream);
    if (done < total) errno = ENOSPC;
    return size ? done / size : 0;
}

int fsync(int descriptor) {
    GUARD("fsync", 1)
    return REAL(fsync)(descriptor);
}
