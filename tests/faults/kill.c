/*
 * Kills the process that it is preloaded into at one of its steps. There is a step before and after
 * each wait for the disk, and before and after each send, receive and connect, with BSV_KILL_WRITES
 * also each write to a file and each change of its length. The test controls it through the file
 * BSV_KILL_CONTROL.
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

/* Whether writing to a file takes steps. */
static int writes;

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
    writes = getenv("BSV_KILL_WRITES") != NULL;
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

/* Defines such a function of a file, with steps if writing takes them. Standard streams are left out. */
#define WRITES(result, name, parameters, arguments)                                                \
    result name parameters {                                                                       \
        static result(*real) parameters;                                                           \
        if (!real)                                                                                 \
            real = dlsym(RTLD_NEXT, #name);                                                        \
        int counts = writes && fd > STDERR_FILENO;                                                 \
        if (counts)                                                                                \
            step();                                                                                \
        result returned = real arguments;                                                          \
        if (counts)                                                                                \
            step();                                                                                \
        return returned;                                                                           \
    }

WRITES(ssize_t, write, (int fd, const void *bytes, size_t len), (fd, bytes, len))
WRITES(int, ftruncate64, (int fd, off64_t len), (fd, len))
