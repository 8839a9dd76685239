// Faults in file calls, for tests: preloaded, these functions take the place of the C library's.
//
// Calls on files below a folder are numbered, over all processes that share a control file. The call with a given number
// fails with an error, writes only a part, or is never made because the process is killed. Everything else is passed on.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

enum { N_LOGGED = 1 << 16, N_DESCRIPTORS = 1 << 12 };
enum { PASS, FAIL, SHORT, KILL, KILL_LEADER, SHORT_AND_KILL };

// As in control.py.
struct control {
    int64_t count;            // calls so far
    int64_t at;               // the number of the call to hit, from 1; 0 for none
    int32_t action;           // one of the above
    int32_t error;            // errno of FAIL
    int32_t leader;           // the process that KILL_LEADER kills
    int32_t hit;              // 1 if the call was made
    char folder[1024];        // files below it count
    char kinds[N_LOGGED];     // one letter per call
};

static struct control* control;
static char tracked[N_DESCRIPTORS];

__attribute__((constructor)) static void map_control(void) {
    const char* name = getenv("TSGKIT_FAULTS");
    if (!name) return;
    int (*real_open)(const char*, int, ...) = dlsym(RTLD_NEXT, "open");
    int (*real_close)(int) = dlsym(RTLD_NEXT, "close");
    int descriptor = real_open(name, O_RDWR);
    if (descriptor < 0) return;
    void* memory = mmap(NULL, sizeof(struct control), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (memory != MAP_FAILED) control = memory;
    real_close(descriptor);
}

static int is_below(const char* path) {
    if (!control || !control->folder[0] || !path) return 0;
    char whole[4096];
    if (path[0] != '/') {
        if (!getcwd(whole, sizeof whole / 2) || strlen(path) >= sizeof whole / 2) return 0;
        strcat(strcat(whole, "/"), path);
        path = whole;
    }
    size_t length = strlen(control->folder);
    return strncmp(path, control->folder, length) == 0 && (path[length] == '/' || path[length] == 0);
}

static int is_tracked(int descriptor) {
    return control && descriptor >= 0 && descriptor < N_DESCRIPTORS && tracked[descriptor];
}

static void track(int descriptor, int whether) {
    if (descriptor >= 0 && descriptor < N_DESCRIPTORS) tracked[descriptor] = (char)whether;
}

static void die(pid_t process) {
    kill(process, SIGKILL);
    for (;;) pause();
}

// Number a call; returns the action for it. One that fails sets errno.
static int next_call(char kind) {
    int64_t number = __atomic_add_fetch(&control->count, 1, __ATOMIC_SEQ_CST);
    if (number <= N_LOGGED) control->kinds[number - 1] = kind;
    if (number != control->at) return PASS;
    control->hit = 1;
    if (control->action == KILL) die(getpid());
    if (control->action == KILL_LEADER) {
        kill(control->leader, SIGKILL);
        return PASS;  // this process ends with the leader, or is the leader
    }
    if (control->action == FAIL) errno = control->error;
    return control->action;
}

#define REAL(result, name, ...) \
    static result (*real)(__VA_ARGS__); \
    if (!real) real = dlsym(RTLD_NEXT, #name)

static int opened(int (*real)(const char*, int, ...), const char* path, int flags, mode_t mode) {
    int counts = is_below(path);
    if (counts && next_call(flags & (O_CREAT | O_WRONLY | O_RDWR) ? 'c' : 'o') == FAIL) return -1;
    int descriptor = real(path, flags, mode);
    track(descriptor, counts);
    return descriptor;
}

#define OPEN(name) \
    int name(const char* path, int flags, ...) { \
        REAL(int, name, const char*, int, ...); \
        va_list rest; \
        va_start(rest, flags); \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0; \
        va_end(rest); \
        return opened(real, path, flags, mode); \
    }
OPEN(open)
OPEN(open64)

#define OPENAT(name) \
    int name(int folder, const char* path, int flags, ...) { \
        REAL(int, name, int, const char*, int, ...); \
        va_list rest; \
        va_start(rest, flags); \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0; \
        va_end(rest); \
        int counts = (folder == AT_FDCWD || path[0] == '/') && is_below(path); \
        if (counts && next_call(flags & (O_CREAT | O_WRONLY | O_RDWR) ? 'c' : 'o') == FAIL) return -1; \
        int descriptor = real(folder, path, flags, mode); \
        track(descriptor, counts); \
        return descriptor; \
    }
OPENAT(openat)
OPENAT(openat64)

ssize_t read(int descriptor, void* buffer, size_t size) {
    REAL(ssize_t, read, int, void*, size_t);
    if (is_tracked(descriptor) && size) {
        int action = next_call('r');
        if (action == FAIL) return -1;
        if (action == SHORT) size = 1;
    }
    return real(descriptor, buffer, size);
}

// How many bytes to write, or -1.
static ssize_t to_write(size_t size, int* action) {
    *action = next_call('w');
    if (*action == FAIL) return -1;
    return (ssize_t)(*action == SHORT || *action == SHORT_AND_KILL ? (size + 1) / 2 : size);
}

ssize_t write(int descriptor, const void* buffer, size_t size) {
    REAL(ssize_t, write, int, const void*, size_t);
    if (!is_tracked(descriptor)) return real(descriptor, buffer, size);
    int action;
    ssize_t allowed = to_write(size, &action);
    if (allowed < 0) return -1;
    ssize_t written = real(descriptor, buffer, (size_t)allowed);
    if (action == SHORT_AND_KILL) die(getpid());
    return written;
}

#define PWRITE(name, offset_type) \
    ssize_t name(int descriptor, const void* buffer, size_t size, offset_type offset) { \
        REAL(ssize_t, name, int, const void*, size_t, offset_type); \
        if (!is_tracked(descriptor)) return real(descriptor, buffer, size, offset); \
        int action; \
        ssize_t allowed = to_write(size, &action); \
        if (allowed < 0) return -1; \
        ssize_t written = real(descriptor, buffer, (size_t)allowed, offset); \
        if (action == SHORT_AND_KILL) die(getpid()); \
        return written; \
    }
PWRITE(pwrite, off_t)
PWRITE(pwrite64, off64_t)

#define ON_DESCRIPTOR(name, kind, parameters, arguments) \
    int name parameters { \
        static int(*real) parameters; \
        if (!real) real = dlsym(RTLD_NEXT, #name); \
        if (is_tracked(descriptor) && next_call(kind) == FAIL) return -1; \
        return real arguments; \
    }
ON_DESCRIPTOR(fsync, 's', (int descriptor), (descriptor))
ON_DESCRIPTOR(fdatasync, 's', (int descriptor), (descriptor))
ON_DESCRIPTOR(fchmod, 'm', (int descriptor, mode_t mode), (descriptor, mode))
ON_DESCRIPTOR(ftruncate, 't', (int descriptor, off_t size), (descriptor, size))
ON_DESCRIPTOR(ftruncate64, 't', (int descriptor, off64_t size), (descriptor, size))
ON_DESCRIPTOR(flock, 'l', (int descriptor, int operation), (descriptor, operation))

// The descriptor is closed in any case, as Linux does.
int close(int descriptor) {
    REAL(int, close, int);
    int fails = is_tracked(descriptor) && next_call('x') == FAIL, error = errno;
    track(descriptor, 0);
    int result = real(descriptor);
    if (!fails) return result;
    errno = error;
    return -1;
}

#define ON_PATH(name, kind, parameters, arguments) \
    int name parameters { \
        static int(*real) parameters; \
        if (!real) real = dlsym(RTLD_NEXT, #name); \
        if (is_below(path) && next_call(kind) == FAIL) return -1; \
        return real arguments; \
    }
ON_PATH(rename, 'n', (const char* path, const char* target), (path, target))
ON_PATH(renameat, 'n', (int one, const char* path, int two, const char* target), (one, path, two, target))
ON_PATH(unlink, 'u', (const char* path), (path))
ON_PATH(unlinkat, 'u', (int folder, const char* path, int flags), (folder, path, flags))
ON_PATH(chmod, 'm', (const char* path, mode_t mode), (path, mode))
ON_PATH(fchmodat, 'm', (int folder, const char* path, mode_t mode, int flags), (folder, path, mode, flags))
