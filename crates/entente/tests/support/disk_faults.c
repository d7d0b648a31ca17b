/* Loaded before a node's own libraries: while the file that DISK_FAULT names exists, the node's disk is at fault.
 * Its first letter says how: `w`, the disk is full, and the first write is cut short; `f`, flushes fail. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static char fault(int file) {
    static __thread int inside = 0;
    const char *path = getenv("DISK_FAULT");
    struct stat status;
    char how = 0;
    int described;
    /* The log is not on that disk. */
    if (path == NULL || file <= 2 || inside || fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) {
        return 0;
    }
    inside = 1;
    described = open(path, O_RDONLY | O_CLOEXEC);
    if (described >= 0) {
        if (read(described, &how, 1) != 1) {
            how = 0;
        }
        close(described);
    }
    inside = 0;
    return how;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static int cut_short(void) {
    static _Atomic int writes = 0;
    return writes++ == 0;
}

#define WRITES(name, parameters, half, all)                                                                            \
    ssize_t name parameters {                                                                                          \
        if (fault(file) == 'w') {                                                                                      \
            if (count > 1 && cut_short()) {                                                                            \
                count /= 2;                                                                                            \
                return REAL(name) half;                                                                                \
            }                                                                                                          \
            errno = ENOSPC;                                                                                            \
            return -1;                                                                                                 \
        }                                                                                                              \
        return REAL(name) all;                                                                                         \
    }

WRITES(write, (int file, const void *bytes, size_t count), (file, bytes, count), (file, bytes, count))
WRITES(pwrite, (int file, const void *bytes, size_t count, off_t at), (file, bytes, count, at), (file, bytes, count, at))
WRITES(pwrite64, (int file, const void *bytes, size_t count, off64_t at), (file, bytes, count, at),
       (file, bytes, count, at))
WRITES(writev, (int file, const struct iovec *parts, int count), (file, parts, count), (file, parts, count))
WRITES(pwritev, (int file, const struct iovec *parts, int count, off_t at), (file, parts, count, at),
       (file, parts, count, at))
WRITES(pwritev64, (int file, const struct iovec *parts, int count, off64_t at), (file, parts, count, at),
       (file, parts, count, at))

#define FLUSHES(name)                                                                                                  \
    int name(int file) {                                                                                               \
        if (fault(file) == 'f') {                                                                                      \
            errno = EIO;                                                                                               \
            return -1;                                                                                                 \
        }                                                                                                              \
        return REAL(name)(file);                                                                                       \
    }

FLUSHES(fsync)
FLUSHES(fdatasync)

int ftruncate64(int file, off64_t length) {
    struct stat status;
    if (fault(file) == 'w' && fstat(file, &status) == 0 && status.st_size < length) {
        errno = ENOSPC;
        return -1;
    }
    return REAL(ftruncate64)(file, length);
}
