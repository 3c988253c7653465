/* A library for LD_PRELOAD that lets a chosen call on files of one folder or a chosen allocation fail, or kills the
 * process in such a call, and that moves the clock. scripts/faults.py compiles it and arms it in the process that is
 * to suffer. Its malloc is a cover of the one of glibc. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { OPEN = 1, CREATE = 2, READ = 4, WRITE = 8, FLUSH = 16, RENAME = 32, REMOVE = 64 };
enum { MOST_FILES = 1 << 16 };
enum { LARGE = 4096 }; /* bytes; smaller allocations are not counted and do not fail */

static char folder[4096];
static size_t folder_length;
static int classes, error_number, signal_number, sticky;
static long due;
static atomic_long calls, clock_calls;
static char watched[MOST_FILES];
static long jump_at;
static double jump_seconds, frozen_at;
static long memory_due;
static int memory_sticky;
static atomic_long allocations, denials;

/* From now on the `nth` call of these classes on files in `where` fails with an error number, or gets a signal;
 * with `lasting`, so does every later one. The working folder is taken to be inside `where`. */
void faulty_arm(const char *where, int which, long nth, int number, int signalled, int lasting) {
    snprintf(folder, sizeof folder, "%s", where);
    folder_length = strlen(folder);
    classes = which, due = nth, error_number = number, signal_number = signalled, sticky = lasting;
    atomic_store(&calls, 0);
}

long faulty_calls(void) { return atomic_load(&calls); }

/* The clock stands at `at` if that is not 0; it is `seconds` ahead from its `nth` reading on. */
void faulty_clock(double at, long nth, double seconds) {
    frozen_at = at, jump_at = nth, jump_seconds = seconds;
    atomic_store(&clock_calls, 0);
}

long faulty_readings(void) { return atomic_load(&clock_calls); }

/* From now on the `nth` allocation of at least LARGE bytes fails; with `lasting`, so does every later one. */
void faulty_memory(long nth, int lasting) {
    memory_due = nth, memory_sticky = lasting;
    atomic_store(&allocations, 0);
    atomic_store(&denials, 0);
}

long faulty_allocations(void) { return atomic_load(&allocations); }

/* How many allocations failed, be it here or because the system did not give more. */
long faulty_denials(void) { return atomic_load(&denials); }

/* SIGKILL comes when the process has used so many seconds of the processor. */
int faulty_kill(double seconds) {
    struct sigevent how = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL};
    struct itimerspec when = {.it_value = {(time_t)seconds, (long)((seconds - (time_t)seconds) * 1e9)}};
    timer_t timer;
    return timer_create(CLOCK_PROCESS_CPUTIME_ID, &how, &timer) || timer_settime(timer, 0, &when, NULL);
}

static int inside(int at, const char *path) {
    if (!folder_length || path == NULL) return 0;
    if (path[0] == '/') return strncmp(path, folder, folder_length) == 0;
    return at == AT_FDCWD || (at >= 0 && at < MOST_FILES && watched[at]);
}

static int is_watched(int file) { return folder_length && file >= 0 && file < MOST_FILES && watched[file]; }

/* 0: go on; 1: fail now; 2: the first to suffer, which may do half of its work before. */
static int suffers(int which) {
    if (!(classes & which)) return 0;
    long now = atomic_fetch_add(&calls, 1) + 1;
    if (due == 0 || now < due || (now > due && !sticky)) return 0;
    return now == due ? 2 : 1;
}

static int strike(int which) {
    if (!suffers(which)) return 0;
    if (signal_number) {
        raise(signal_number);
        return 0;
    }
    errno = error_number;
    return 1;
}

#define REAL(name) \
    static __typeof__(&name) real; \
    if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

static int keep(int file, int seen) {
    if (file >= 0 && file < MOST_FILES) watched[file] = (char)seen;
    return file;
}

#define OPENING(name, at, ...) \
    REAL(name); \
    mode_t mode = 0; \
    if (flags & (O_CREAT | O_TMPFILE)) { \
        va_list more; \
        va_start(more, flags); \
        mode = va_arg(more, mode_t); \
        va_end(more); \
    } \
    int seen = inside(at, path); \
    if (seen && strike(flags & (O_WRONLY | O_RDWR | O_CREAT) ? CREATE : OPEN)) return -1; \
    return keep(real(__VA_ARGS__, mode), seen)

int open(const char *path, int flags, ...) { OPENING(open, AT_FDCWD, path, flags); }
int open64(const char *path, int flags, ...) { OPENING(open64, AT_FDCWD, path, flags); }
int openat(int at, const char *path, int flags, ...) { OPENING(openat, at, at, path, flags); }
int openat64(int at, const char *path, int flags, ...) { OPENING(openat64, at, at, path, flags); }

FILE *fopen64(const char *path, const char *mode) {
    REAL(fopen64);
    int seen = inside(AT_FDCWD, path);
    if (seen && strike(mode[0] == 'r' ? OPEN : CREATE)) return NULL;
    return real(path, mode);
}

int close(int file) {
    REAL(close);
    keep(file, 0);
    return real(file);
}

#define READING(name, ...) \
    REAL(name); \
    if (is_watched(file) && strike(READ)) return -1; \
    return real(__VA_ARGS__)

ssize_t read(int file, void *to, size_t size) { READING(read, file, to, size); }
ssize_t pread(int file, void *to, size_t size, off_t at) { READING(pread, file, to, size, at); }
ssize_t pread64(int file, void *to, size_t size, off64_t at) { READING(pread64, file, to, size, at); }
ssize_t readv(int file, const struct iovec *to, int count) { READING(readv, file, to, count); }

/* A full disk takes half of what it is given, then nothing; a process may be killed half-way, too. */
#define WRITING(name, size, half, ...) \
    REAL(name); \
    if (is_watched(file)) { \
        int now = suffers(WRITE); \
        if (now && signal_number) { \
            if (signal_number == SIGKILL && (size) > 1) (void)!half; \
            raise(signal_number); \
        } else if (now == 2 && error_number == ENOSPC && (size) > 1) { \
            return half; \
        } else if (now) { \
            errno = error_number; \
            return -1; \
        } \
    } \
    return real(__VA_ARGS__)

ssize_t write(int file, const void *from, size_t size) {
    WRITING(write, size, real(file, from, size / 2), file, from, size);
}
ssize_t pwrite(int file, const void *from, size_t size, off_t at) {
    WRITING(pwrite, size, real(file, from, size / 2, at), file, from, size, at);
}
ssize_t pwrite64(int file, const void *from, size_t size, off64_t at) {
    WRITING(pwrite64, size, real(file, from, size / 2, at), file, from, size, at);
}
ssize_t writev(int file, const struct iovec *from, int count) {
    WRITING(writev, count, real(file, from, count / 2), file, from, count);
}
ssize_t sendfile64(int file, int from, off64_t *at, size_t size) {
    extern ssize_t sendfile64(int, int, off64_t *, size_t);
    WRITING(sendfile64, size, real(file, from, at, size / 2), file, from, at, size);
}

#define ON_FILE(which, name, ...) \
    REAL(name); \
    if (is_watched(file) && strike(which)) return -1; \
    return real(__VA_ARGS__)

int ftruncate64(int file, off64_t size) { ON_FILE(WRITE, ftruncate64, file, size); }
int fsync(int file) { ON_FILE(FLUSH, fsync, file); }
int fdatasync(int file) { ON_FILE(FLUSH, fdatasync, file); }

#define ON_PATH(which, at, path, name, ...) \
    REAL(name); \
    if (inside(at, path) && strike(which)) return -1; \
    return real(__VA_ARGS__)

int rename(const char *a, const char *b) { ON_PATH(RENAME, AT_FDCWD, b, rename, a, b); }
int renameat(int i, const char *a, int j, const char *b) { ON_PATH(RENAME, j, b, renameat, i, a, j, b); }
int renameat2(int i, const char *a, int j, const char *b, unsigned how) {
    ON_PATH(RENAME, j, b, renameat2, i, a, j, b, how);
}
int link(const char *a, const char *b) { ON_PATH(RENAME, AT_FDCWD, b, link, a, b); }
int linkat(int i, const char *a, int j, const char *b, int how) {
    ON_PATH(RENAME, j, b, linkat, i, a, j, b, how);
}
int mkdir(const char *path, mode_t mode) { ON_PATH(CREATE, AT_FDCWD, path, mkdir, path, mode); }
int mkdirat(int at, const char *path, mode_t mode) { ON_PATH(CREATE, at, path, mkdirat, at, path, mode); }
int unlink(const char *path) { ON_PATH(REMOVE, AT_FDCWD, path, unlink, path); }
int unlinkat(int at, const char *path, int how) { ON_PATH(REMOVE, at, path, unlinkat, at, path, how); }
int rmdir(const char *path) { ON_PATH(REMOVE, AT_FDCWD, path, rmdir, path); }

/* Readings count that come from Python: DuckDB looks at the clock while it waits, now more often and now less. */
static int is_python(const void *caller) {
    Dl_info here, there;
    void *python = dlsym(RTLD_DEFAULT, "Py_IsInitialized");
    return python && dladdr(python, &here) && dladdr(caller, &there) && here.dli_fbase == there.dli_fbase;
}

static double moved(double now, int counts) {
    long reading = atomic_fetch_add(&clock_calls, counts) + counts;
    return (frozen_at ? frozen_at : now) + (jump_at && reading >= jump_at ? jump_seconds : 0);
}

int clock_gettime(clockid_t clock, struct timespec *to) {
    REAL(clock_gettime);
    int failed = real(clock, to);
    if (failed || clock != CLOCK_REALTIME || !(frozen_at || jump_at)) return failed;
    double now = moved((double)to->tv_sec, is_python(__builtin_return_address(0)));
    to->tv_sec = (time_t)now;
    if (frozen_at) to->tv_nsec = 0;
    return 0;
}

static int lacks(size_t size) {
    if (size < LARGE) return 0;
    long now = atomic_fetch_add(&allocations, 1) + 1;
    return memory_due && (now == memory_due || (now > memory_due && memory_sticky));
}

static void *denied(void) {
    atomic_fetch_add(&denials, 1);
    errno = ENOMEM;
    return NULL;
}

/* dlsym may allocate itself, so that these four are called by the names that glibc has for them besides. */
extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

void *malloc(size_t size) {
    void *got = lacks(size) ? NULL : __libc_malloc(size);
    return got ? got : denied();
}
void *calloc(size_t count, size_t size) {
    void *got = lacks(count * size) ? NULL : __libc_calloc(count, size);
    return got ? got : denied();
}
void *realloc(void *old, size_t size) {
    void *got = lacks(size) ? NULL : __libc_realloc(old, size);
    return got || (old && !size) ? got : denied(); /* a size of 0 frees */
}
void *memalign(size_t by, size_t size) {
    void *got = lacks(size) ? NULL : __libc_memalign(by, size);
    return got ? got : denied();
}
void *aligned_alloc(size_t by, size_t size) { return memalign(by, size); }
int posix_memalign(void **to, size_t by, size_t size) {
    void *got = memalign(by, size);
    if (!got) return ENOMEM;
    *to = got;
    return 0;
}

/* glibc takes memory for malloc from the system by a way of its own: nothing is counted twice. */
#define MAPPING(name) \
    REAL(name); \
    if ((flags & MAP_ANONYMOUS) && lacks(size)) { \
        denied(); \
        return MAP_FAILED; \
    } \
    void *got = real(to, size, rights, flags, file, at); \
    if (got == MAP_FAILED && errno == ENOMEM) denied(); \
    return got

void *mmap(void *to, size_t size, int rights, int flags, int file, off_t at) { MAPPING(mmap); }
void *mmap64(void *to, size_t size, int rights, int flags, int file, off64_t at) { MAPPING(mmap64); }
