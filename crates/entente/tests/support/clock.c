// The clock of a machine that is an hour ahead: what a process asks for the time of day. Time that only goes on is as it is.
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *time) {
    int failed = syscall(SYS_clock_gettime, clock, time);
    if (!failed && clock == CLOCK_REALTIME) {
        time->tv_sec += 3600;
    }
    return failed;
}
