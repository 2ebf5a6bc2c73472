/*
 * Kills the process that it is preloaded into at one of its steps. There is a step before and after
 * each wait for the disk, and before and after each send, receive and connect. The test controls it
 * through the file BSV_KILL_CONTROL.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

/* The process is killed when `count` reaches `at`. */
struct control {
    uint64_t at, count;
};

static struct control *control;

__attribute__((constructor)) static void start(void) {
    const char *path = getenv("BSV_KILL_CONTROL");
    if (!path)
        return;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    void *map = fd < 0 ? MAP_FAILED
                       : mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED)
        abort();
    close(fd);
    control = map;
}

static void step(void) {
    if (!control)
        return;
    uint64_t taken = __atomic_add_fetch(&control->count, 1, __ATOMIC_SEQ_CST);
    if (taken == __atomic_load_n(&control->at, __ATOMIC_SEQ_CST))
        kill(getpid(), SIGKILL);
}

/* Defines the function `name`, which calls the real one between two steps. */
#define STEPS(result, name, parameters, arguments)                                                 \
    result name parameters {                                                                       \
        static result(*real) parameters;                                                           \
        if (!real)                                                                                 \
            real = dlsym(RTLD_NEXT, #name);                                                        \
        step();                                                                                    \
        result returned = real arguments;                                                          \
        step();                                                                                    \
        return returned;                                                                           \
    }

STEPS(int, fsync, (int fd), (fd))
STEPS(int, fdatasync, (int fd), (fd))
STEPS(int, connect, (int fd, const struct sockaddr *to, socklen_t len), (fd, to, len))
STEPS(ssize_t, send, (int fd, const void *bytes, size_t len, int flags), (fd, bytes, len, flags))
STEPS(ssize_t, recv, (int fd, void *bytes, size_t len, int flags), (fd, bytes, len, flags))
STEPS(ssize_t, writev, (int fd, const struct iovec *parts, int count), (fd, parts, count))
