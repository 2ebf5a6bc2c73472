/*
 * Makes operations on the files below the directory BSV_FAULT_DIR fail as they do when its disk is
 * full or breaks. It is preloaded into the program under test. The test controls it through the file
 * BSV_FAULT_CONTROL.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

/*
 * One kind of operation. Operations are counted from 0. `span` of them fail, from number `first` on. If
 * `error` is 0, they hang instead, until the test changes `first`.
 */
struct gate {
    uint64_t first, span, error, count;
};

struct control {
    struct gate space, sync;
    /* Whether the first failing write still writes half of its bytes. */
    uint64_t torn;
};

static struct control *control;
static const char *directory;
static size_t directory_len;

__attribute__((constructor)) static void start(void) {
    const char *path = getenv("BSV_FAULT_CONTROL");
    const char *below = getenv("BSV_FAULT_DIR");
    if (!path || !below)
        return;
    /* PostgreSQL writes its titles over the environment. */
    directory = strdup(below);
    if (!directory)
        abort();
    directory_len = strlen(directory);
    int (*real_open)(const char *, int, ...) = dlsym(RTLD_NEXT, "open");
    int fd = real_open(path, O_RDWR | O_CLOEXEC);
    void *map = fd < 0 ? MAP_FAILED
                       : mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED)
        abort();
    close(fd);
    control = map;
}

static int is_below(const char *path) {
    return control && !strncmp(path, directory, directory_len) &&
           (path[directory_len] == '/' || !path[directory_len]);
}

static int is_file_below(int fd) {
    char link[40], path[PATH_MAX];
    if (!control)
        return 0;
    int saved = errno;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t len = readlink(link, path, sizeof path - 1);
    errno = saved;
    if (len < 0)
        return 0;
    path[len] = 0;
    return is_below(path);
}

static int exists(const char *path) {
    int saved = errno;
    int found = !faccessat(AT_FDCWD, path, F_OK, 0);
    errno = saved;
    return found;
}

/* Counts an operation. Returns 0 if it succeeds, 1 if it is the first that fails, and 2 otherwise. */
static int fails(struct gate *gate) {
    uint64_t number = __atomic_fetch_add(&gate->count, 1, __ATOMIC_SEQ_CST);
    uint64_t first = __atomic_load_n(&gate->first, __ATOMIC_SEQ_CST);
    if (number < first || number - first >= gate->span)
        return 0;
    if (!gate->error) {
        while (__atomic_load_n(&gate->first, __ATOMIC_SEQ_CST) == first)
            usleep(1000);
        return 0;
    }
    errno = (int)gate->error;
    return number == first ? 1 : 2;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

/* Sets whether a write fails. If it does, returns the length to write instead, or -1. */
static ssize_t cut(int fd, size_t len, int *is_cut) {
    int failure = is_file_below(fd) ? fails(&control->space) : 0;
    *is_cut = failure != 0;
    return failure == 1 && control->torn && len > 1 ? (ssize_t)(len / 2) : -1;
}

ssize_t write(int fd, const void *bytes, size_t len) {
    int is_cut;
    ssize_t half = cut(fd, len, &is_cut);
    if (is_cut)
        return half < 0 ? -1 : REAL(write)(fd, bytes, (size_t)half);
    return REAL(write)(fd, bytes, len);
}

static ssize_t pwrite_at(int fd, const void *bytes, size_t len, off_t offset) {
    int is_cut;
    ssize_t half = cut(fd, len, &is_cut);
    if (is_cut)
        return half < 0 ? -1 : REAL(pwrite)(fd, bytes, (size_t)half, offset);
    return REAL(pwrite)(fd, bytes, len, offset);
}

ssize_t pwrite(int fd, const void *bytes, size_t len, off_t offset) {
    return pwrite_at(fd, bytes, len, offset);
}

ssize_t pwrite64(int fd, const void *bytes, size_t len, off64_t offset) {
    return pwrite_at(fd, bytes, len, offset);
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
    return is_file_below(fd) && fails(&control->space) ? -1 : REAL(writev)(fd, parts, count);
}

ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t offset) {
    return is_file_below(fd) && fails(&control->space) ? -1
                                                       : REAL(pwritev)(fd, parts, count, offset);
}

ssize_t pwritev64(int fd, const struct iovec *parts, int count, off64_t offset) {
    return pwritev(fd, parts, count, offset);
}

ssize_t copy_file_range(int from, off64_t *from_offset, int to, off64_t *to_offset, size_t len,
                        unsigned flags) {
    if (is_file_below(to) && fails(&control->space))
        return -1;
    return REAL(copy_file_range)(from, from_offset, to, to_offset, len, flags);
}

static int grows(int fd, off_t len) {
    struct stat file;
    return is_file_below(fd) && !fstat(fd, &file) && len > file.st_size;
}

int ftruncate(int fd, off_t len) {
    return grows(fd, len) && fails(&control->space) ? -1 : REAL(ftruncate)(fd, len);
}

int ftruncate64(int fd, off64_t len) {
    return grows(fd, len) && fails(&control->space) ? -1 : REAL(ftruncate)(fd, len);
}

int fallocate(int fd, int mode, off_t offset, off_t len) {
    return is_file_below(fd) && fails(&control->space) ? -1
                                                       : REAL(fallocate)(fd, mode, offset, len);
}

int fallocate64(int fd, int mode, off64_t offset, off64_t len) {
    return fallocate(fd, mode, offset, len);
}

int posix_fallocate(int fd, off_t offset, off_t len) {
    return is_file_below(fd) && fails(&control->space) ? errno
                                                       : REAL(posix_fallocate)(fd, offset, len);
}

static int open_at(int dir, const char *path, int flags, mode_t mode) {
    if ((flags & O_CREAT) && is_below(path) && !exists(path) && fails(&control->space))
        return -1;
    return REAL(openat)(dir, path, flags, mode);
}

#define MODE(flags, mode)                                                                         \
    mode_t mode = 0;                                                                              \
    if ((flags) & (O_CREAT | O_TMPFILE)) {                                                        \
        va_list rest;                                                                             \
        va_start(rest, flags);                                                                    \
        mode = va_arg(rest, mode_t);                                                              \
        va_end(rest);                                                                             \
    }

int open(const char *path, int flags, ...) {
    MODE(flags, mode)
    return open_at(AT_FDCWD, path, flags, mode);
}

int open64(const char *path, int flags, ...) {
    MODE(flags, mode)
    return open_at(AT_FDCWD, path, flags, mode);
}

int openat(int dir, const char *path, int flags, ...) {
    MODE(flags, mode)
    return open_at(dir, path, flags, mode);
}

int openat64(int dir, const char *path, int flags, ...) {
    MODE(flags, mode)
    return open_at(dir, path, flags, mode);
}

int mkdir(const char *path, mode_t mode) {
    if (is_below(path) && !exists(path) && fails(&control->space))
        return -1;
    return REAL(mkdir)(path, mode);
}

int rename(const char *from, const char *to) {
    return is_below(to) && fails(&control->space) ? -1 : REAL(rename)(from, to);
}

int bind(int fd, const struct sockaddr *address, socklen_t len) {
    if (address->sa_family == AF_UNIX && is_below(((const struct sockaddr_un *)address)->sun_path) &&
        fails(&control->space))
        return -1;
    return REAL(bind)(fd, address, len);
}

int fsync(int fd) {
    return is_file_below(fd) && fails(&control->sync) ? -1 : REAL(fsync)(fd);
}

int fdatasync(int fd) {
    return is_file_below(fd) && fails(&control->sync) ? -1 : REAL(fdatasync)(fd);
}
