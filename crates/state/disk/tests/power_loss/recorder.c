/* Loaded before a program's own libraries: writes down, in order, what the program does to the files below the folder that
 * RECORDER_FOLDER names, in the file that RECORDER_LOG names. `records.rs` says what a record looks like.
 *
 * It meets system calls, not functions of the C library: some libraries (rustix, which renames for lsm-tree) make their
 * own. The kernel hands each call that changes files to `met` instead of executing it (seccomp, SIGSYS); only `plain`,
 * which `met` uses, is let through.
 *
 * What changes names or content happens with a lock, so that the order in the log is the order in which it happened. In
 * front of it stands `?`: where that is the last in the log, the program was killed between a change and its record. A flush
 * is not made, as no power is lost here: it begins, takes a moment, and ends. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define PARTS_MAX 64
/* A flush takes at least this long, in nanoseconds: others go on meanwhile. */
#define FLUSH 100000

/* A system call that the kernel lets through: it knows the address behind it. */
long plain(long number, long a, long b, long c, long d, long e);
extern char plain_made[];
#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#define ARGUMENT(context, n) ((context)->uc_mcontext.gregs[(int[]){REG_RDI, REG_RSI, REG_RDX, REG_R10, REG_R8}[n]])
#define RESULT(context) ((context)->uc_mcontext.gregs[REG_RAX])
__asm__(".text\n.globl plain\n.hidden plain\n.globl plain_made\n.hidden plain_made\n.type plain, @function\nplain:\n"
        "mov %rdi, %rax\nmov %rsi, %rdi\nmov %rdx, %rsi\nmov %rcx, %rdx\nmov %r8, %r10\nmov %r9, %r8\nsyscall\n"
        "plain_made:\nret\n");
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#define ARGUMENT(context, n) ((long)(context)->uc_mcontext.regs[n])
#define RESULT(context) ((context)->uc_mcontext.regs[0])
__asm__(".text\n.globl plain\n.hidden plain\n.globl plain_made\n.hidden plain_made\n.type plain, %function\nplain:\n"
        "mov x8, x0\nmov x0, x1\nmov x1, x2\nmov x2, x3\nmov x3, x4\nmov x4, x5\nsvc #0\n"
        "plain_made:\nret\n");
#else
#error "registers of this machine are not known here"
#endif

struct call {
    long number;
    long arguments[5];
};

static long as_asked(struct call call) {
    const long *a = call.arguments;
    return plain(call.number, a[0], a[1], a[2], a[3], a[4]);
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int records = -1;
static char folder[PATH_MAX];
static size_t folder_length;
static _Atomic unsigned long flushes = 0;

static void fail(const char *what) {
    plain(SYS_write, 2, (long)what, (long)strlen(what), 0, 0);
    plain(SYS_exit_group, 99, 0, 0, 0, 0);
}

/* One record in one write, so that the log of a program that was killed ends behind a record, or with a part of one. */
static void record_parts(struct iovec *parts, int count) {
    long whole = 0;
    for (int i = 0; i < count; i++) {
        whole += (long)parts[i].iov_len;
    }
    if (plain(SYS_writev, records, (long)parts, count, 0, 0) != whole) {
        fail("recorder: the log cannot be written\n");
    }
}

#define RECORD(...)                                                                                                    \
    do {                                                                                                               \
        char line[2 * PATH_MAX + 64];                                                                                  \
        struct iovec part = {line, (size_t)snprintf(line, sizeof line, __VA_ARGS__)};                                  \
        record_parts(&part, 1);                                                                                        \
    } while (0)

/* What stands below the folder, without it; NULL: the path is elsewhere. */
static const char *below(const char *path) {
    return strncmp(path, folder, folder_length) == 0 && path[folder_length] == '/' ? path + folder_length + 1 : NULL;
}

static const char *path_of_file(int file, char *path) {
    char link[64];
    ssize_t length;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    length = readlink(link, path, PATH_MAX - 1);
    path[length < 0 ? 0 : length] = 0;
    return below(path);
}

/* The whole path of a name, and what of it stands below the folder. */
static const char *path_at(int at, const char *name, char *path) {
    char start[PATH_MAX];
    if (name[0] == '/') {
        snprintf(path, PATH_MAX, "%s", name);
        return below(path);
    }
    if (at == AT_FDCWD) {
        if (getcwd(start, sizeof start) == NULL) {
            return NULL;
        }
    } else {
        path_of_file(at, start);
    }
    if ((size_t)snprintf(path, PATH_MAX, "%s/%s", start, name) >= PATH_MAX) {
        return NULL;
    }
    return below(path);
}

static unsigned long number_of(int file, off_t *length) {
    struct stat status;
    if (fstat(file, &status) != 0) {
        fail("recorder: a file cannot be described\n");
    }
    if (length != NULL) {
        *length = status.st_size;
    }
    return (unsigned long)status.st_ino;
}

static void begin(void) {
    pthread_mutex_lock(&lock);
    RECORD("?\n");
}

static long end(long result) {
    pthread_mutex_unlock(&lock);
    return result;
}

static long opens(int at, const char *name, int flags, mode_t mode) {
    char path[PATH_MAX];
    const char *inside = flags & (O_CREAT | O_TRUNC) ? path_at(at, name, path) : NULL;
    struct stat status;
    int is_new;
    long file;
    if (inside == NULL) {
        return plain(SYS_openat, at, (long)name, flags, (long)mode, 0);
    }
    begin();
    is_new = stat(path, &status) != 0;
    file = plain(SYS_openat, at, (long)name, flags, (long)mode, 0);
    if (file >= 0 && is_new) {
        RECORD("created %s %lu\n", inside, number_of((int)file, NULL));
    } else if (file >= 0 && flags & O_TRUNC) {
        RECORD("cut %lu 0\n", number_of((int)file, NULL));
    }
    return end(file);
}

/* `at` < 0: where the file stands. */
static long writes(int file, const struct iovec *from, int count, off_t at) {
    char path[PATH_MAX], line[128];
    struct iovec parts[PARTS_MAX + 1];
    unsigned long number;
    off_t length, place = at;
    long written, left;
    int used = 1;
    const char *inside = path_of_file(file, path);
    if (inside == NULL && file != STDOUT_FILENO) {
        return at < 0 ? plain(SYS_writev, file, (long)from, count, 0, 0)
                      : plain(SYS_pwritev, file, (long)from, count, (long)at, 0);
    }
    if (count > PARTS_MAX) {
        count = PARTS_MAX;
    }
    if (inside == NULL) {
        /* What it says is in the log before anybody hears it. */
        pthread_mutex_lock(&lock);
        written = 0;
        for (int i = 0; i < count; i++) {
            written += (long)from[i].iov_len;
        }
        snprintf(line, sizeof line, "said %ld\n", written);
    } else {
        begin();
        number = number_of(file, &length);
        if (at < 0) {
            place = fcntl(file, F_GETFL) & O_APPEND ? length : lseek(file, 0, SEEK_CUR);
        }
        written = at < 0 ? plain(SYS_writev, file, (long)from, count, 0, 0)
                         : plain(SYS_pwritev, file, (long)from, count, (long)at, 0);
        snprintf(line, sizeof line, "written %lu %ld %ld\n", number, (long)place, written);
    }
    if (written > 0) {
        parts[0] = (struct iovec){line, strlen(line)};
        left = written;
        for (int i = 0; i < count && left > 0; i++, used++) {
            parts[used] = from[i];
            if ((long)parts[used].iov_len > left) {
                parts[used].iov_len = (size_t)left;
            }
            left -= (long)parts[used].iov_len;
        }
        record_parts(parts, used);
    }
    if (inside == NULL) {
        written = plain(SYS_writev, file, (long)from, count, 0, 0);
    }
    return end(written);
}

static long flushes_file(struct call call, int file) {
    char path[PATH_MAX];
    const char *inside;
    struct stat status;
    struct timespec moment = {0, FLUSH};
    unsigned long number = ++flushes;
    pthread_mutex_lock(&lock);
    inside = path_of_file(file, path);
    /* The folder itself has an empty name. */
    if (inside == NULL && strcmp(path, folder) == 0) {
        inside = "";
    }
    if (inside == NULL || fstat(file, &status) != 0) {
        return end(as_asked(call));
    }
    if (S_ISDIR(status.st_mode)) {
        RECORD("flushes-folder %lu /%s\n", number, inside);
    } else {
        RECORD("flushes-file %lu %lu\n", number, (unsigned long)status.st_ino);
    }
    end(0);
    nanosleep(&moment, NULL);
    pthread_mutex_lock(&lock);
    RECORD("flushed %lu\n", number);
    return end(0);
}

static long cuts(int file, off_t length) {
    char path[PATH_MAX];
    long result;
    if (path_of_file(file, path) == NULL) {
        return plain(SYS_ftruncate, file, (long)length, 0, 0, 0);
    }
    begin();
    result = plain(SYS_ftruncate, file, (long)length, 0, 0, 0);
    if (result == 0) {
        RECORD("cut %lu %ld\n", number_of(file, NULL), (long)length);
    }
    return end(result);
}

/* A name comes or goes, or goes to another name. */
static long names(const char *what, struct call call, int at, const char *name, int to_at, const char *to) {
    char path[PATH_MAX], to_path[PATH_MAX];
    const char *inside = path_at(at, name, path), *to_inside = to == NULL ? NULL : path_at(to_at, to, to_path);
    long result;
    if (inside == NULL && to_inside == NULL) {
        return as_asked(call);
    }
    if (inside == NULL || (to != NULL && to_inside == NULL)) {
        fail("recorder: a name comes from elsewhere or goes there\n");
    }
    begin();
    result = as_asked(call);
    if (result == 0 && to == NULL) {
        RECORD("%s %s\n", what, inside);
    } else if (result == 0) {
        RECORD("%s %s %s\n", what, inside, to_inside);
    }
    return end(result);
}

#define NAME(n) ((const char *)a[n])
#define FILE(n) ((int)a[n])

static long made(struct call call) {
    const long *a = call.arguments;
    const struct iovec part = {(void *)a[1], (size_t)a[2]};
    switch (call.number) {
    case SYS_openat: return opens(FILE(0), NAME(1), (int)a[2], (mode_t)a[3]);
    case SYS_write: return writes(FILE(0), &part, 1, -1);
    case SYS_pwrite64: return writes(FILE(0), &part, 1, (off_t)a[3]);
    case SYS_writev: return writes(FILE(0), (const struct iovec *)a[1], (int)a[2], -1);
    case SYS_fsync:
    case SYS_fdatasync: return flushes_file(call, FILE(0));
    case SYS_ftruncate: return cuts(FILE(0), (off_t)a[1]);
#ifdef SYS_renameat
    case SYS_renameat:
#endif
    case SYS_renameat2: return names("moved", call, FILE(0), NAME(1), FILE(2), NAME(3));
    case SYS_linkat: return names("linked", call, FILE(0), NAME(1), FILE(2), NAME(3));
    case SYS_mkdirat: return names("folder", call, FILE(0), NAME(1), 0, NULL);
    case SYS_unlinkat: return names("removed", call, FILE(0), NAME(1), 0, NULL);
#ifdef SYS_open
    case SYS_open: return opens(AT_FDCWD, NAME(0), (int)a[1], (mode_t)a[2]);
    case SYS_creat: return opens(AT_FDCWD, NAME(0), O_CREAT | O_WRONLY | O_TRUNC, (mode_t)a[1]);
    case SYS_rename: return names("moved", call, AT_FDCWD, NAME(0), AT_FDCWD, NAME(1));
    case SYS_link: return names("linked", call, AT_FDCWD, NAME(0), AT_FDCWD, NAME(1));
    case SYS_mkdir: return names("folder", call, AT_FDCWD, NAME(0), 0, NULL);
    case SYS_unlink:
    case SYS_rmdir: return names("removed", call, AT_FDCWD, NAME(0), 0, NULL);
#endif
    default: return as_asked(call);
    }
}

static const long met_calls[] = {
    SYS_openat, SYS_write,  SYS_pwrite64, SYS_writev,  SYS_fsync,    SYS_fdatasync, SYS_ftruncate, SYS_renameat2,
    SYS_linkat, SYS_mkdirat, SYS_unlinkat,
#ifdef SYS_renameat
    SYS_renameat,
#endif
#ifdef SYS_open
    SYS_open,   SYS_creat,  SYS_rename,   SYS_link,    SYS_mkdir,    SYS_unlink,    SYS_rmdir,
#endif
};
#define MET (sizeof met_calls / sizeof met_calls[0])

static void met(int signal, siginfo_t *what, void *where) {
    ucontext_t *context = where;
    int before = errno;
    struct call call = {what->si_syscall, {0}};
    (void)signal;
    for (int n = 0; n < 5; n++) {
        call.arguments[n] = (long)ARGUMENT(context, n);
    }
    RESULT(context) = made(call);
    errno = before;
}

#define LOAD(place) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, place)
/* Goes on where it is this value, and otherwise so many steps further on. */
#define IS(value, steps) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)(value), 0, steps)
#define GIVE(what) BPF_STMT(BPF_RET | BPF_K, what)
/* Where an address has its lower half, on machines whose lower bytes come first. */
#define ADDRESS offsetof(struct seccomp_data, instruction_pointer)

__attribute__((constructor)) static void start(void) {
    const char *log = getenv("RECORDER_LOG"), *root = getenv("RECORDER_FOLDER");
    const unsigned long let_through = (unsigned long)plain_made;
    const struct sock_filter others[] = {
        LOAD(offsetof(struct seccomp_data, arch)),
        IS(ARCHITECTURE, 4),
        LOAD(ADDRESS),
        IS(let_through, 3),
        LOAD(ADDRESS + 4),
        IS(let_through >> 32, 1),
        GIVE(SECCOMP_RET_ALLOW),
        LOAD(offsetof(struct seccomp_data, nr)),
    };
    struct sock_filter filter[sizeof others / sizeof others[0] + 2 * MET + 1];
    struct sigaction action = {.sa_sigaction = met, .sa_flags = SA_SIGINFO | SA_NODEFER | SA_RESTART};
    struct sock_fprog program = {0, filter};
    if (log == NULL || root == NULL) {
        return;
    }
    memcpy(filter, others, sizeof others);
    program.len = sizeof others / sizeof others[0];
    for (size_t n = 0; n < MET; n++) {
        filter[program.len++] = (struct sock_filter)IS(met_calls[n], 1);
        filter[program.len++] = (struct sock_filter)GIVE(SECCOMP_RET_TRAP);
    }
    filter[program.len++] = (struct sock_filter)GIVE(SECCOMP_RET_ALLOW);
    folder_length = (size_t)snprintf(folder, sizeof folder, "%s", root);
    records = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (records < 0 || sigaction(SIGSYS, &action, NULL) != 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        fail("recorder: it cannot start\n");
    }
}
