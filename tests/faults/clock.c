/*
 * Shifts the wall clock of the program that this is preloaded into by the number of seconds in the
 * file BSV_CLOCK_CONTROL, which the test writes. Clocks that only measure durations do not change.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const int64_t *control;

__attribute__((constructor)) static void start(void) {
    const char *path = getenv("BSV_CLOCK_CONTROL");
    if (!path)
        return;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    void *map = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *control, PROT_READ, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED)
        abort();
    close(fd);
    control = map;
}

static time_t shift(void) {
    return control ? (time_t)__atomic_load_n(control, __ATOMIC_SEQ_CST) : 0;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static int read_real(clockid_t clock, struct timespec *out) {
    static __typeof__(&clock_gettime) real;
    if (!real)
        real = REAL(clock_gettime);
    return real(clock, out);
}

int clock_gettime(clockid_t clock, struct timespec *out) {
    int result = read_real(clock, out);
    if (!result && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        out->tv_sec += shift();
    return result;
}

int gettimeofday(struct timeval *restrict out, void *restrict zone) {
    int result = REAL(gettimeofday)(out, zone);
    if (!result)
        out->tv_sec += shift();
    return result;
}

time_t time(time_t *out) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (out)
        *out = now.tv_sec;
    return now.tv_sec;
}
