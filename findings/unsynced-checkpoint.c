/* Loaded into a MariaDB or MySQL server with LD_PRELOAD by unsynced-checkpoint.sh.
 *
 * Follows the pages of one data file ($WATCH, the end of its name): which were written and not synced
 * since. A page counts as synced when an fsync() that was called after the page's write had returned
 * has itself returned. When the server writes a checkpoint into its log, every such page whose
 * log sequence number lies below that of the checkpoint is reported on standard error: recovery
 * would start behind the page's changes, and the page may be lost in a power cut. Pages of zeros (LSN 0),
 * which extend a file, have no change to lose.
 *
 * DELAY=MS  each fsync() of the file returns so much later, as on slow storage.
 * CUT=1     ends the server at the first such checkpoint as a power cut may: the checkpoint is
 *           durable, and the pages that were not synced have the content of their last sync.
 *
 * Page writes have to come through pwrite(): innodb_use_native_aio=0. Checkpoints are blocks of the log:
 * - MariaDB 10.8 and later: at 4096 and 8192 of ib_logfile0, their first 8 bytes the LSN;
 * - MySQL 8.0 and later: at 512 and 1536 of ib_logfile0, from 8.0.30 on of #innodb_redo/#ib_redoN, the LSN
 *   at byte 8. $MYSQL is set for these. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 16384, PAGES = 1 << 16 };

struct page {
    uint64_t written; /* number of the last write, 0: synced */
    uint64_t lsn;     /* of that write */
    int again;        /* written twice since: which content was synced is not known */
    double at;        /* seconds, when it returned */
    unsigned char *before; /* what the file had when it was last synced */
};

static struct page pages[PAGES];
static uint64_t writes, checkpoints;
static double fsync_called, fsync_returned;
static pid_t fsync_thread;
static char file[PATH_MAX];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
/* Held for writing while the power is cut. */
static pthread_rwlock_t power = PTHREAD_RWLOCK_INITIALIZER;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static uint64_t be64(const unsigned char *p) {
    uint64_t n = 0;
    for (int i = 0; i < 8; i++) n = n << 8 | p[i];
    return n;
}

/* Whether the descriptor is of a file whose name ends so. */
static int is(int fd, const char *end, char *name) {
    char link[64];
    if (!end) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, name, PATH_MAX - 1);
    if (length < (ssize_t)strlen(end)) return 0;
    name[length] = 0;
    return !strcmp(name + length - strlen(end), end);
}

static ssize_t write_down(int fd, const void *buffer, size_t size, off_t at) {
    static ssize_t (*next)(int, const void *, size_t, off_t);
    if (!next) next = (ssize_t (*)(int, const void *, size_t, off_t))dlsym(RTLD_NEXT, "pwrite64");
    return next(fd, buffer, size, at);
}

static int sync_down(int fd) {
    static int (*next)(int);
    if (!next) next = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
    return next(fd);
}

/* Whether a write is that of a checkpoint; at which byte of it the LSN is. */
static int is_checkpoint(int fd, size_t size, off_t at, char *name, size_t *lsn) {
    *lsn = getenv("MYSQL") ? 8 : 0;
    if (!*lsn) return (at == 4096 || at == 8192) && is(fd, "/ib_logfile0", name);
    if (size != 512 || (at != 512 && at != 1536)) return 0;
    if (is(fd, "/ib_logfile0", name)) return 1;
    if (!is(fd, "", name)) return 0;
    return strstr(name, "/#innodb_redo/#ib_redo") != NULL;
}

/* Puts back what was not synced, and ends the server. */
static void cut(int log) {
    sync_down(log);
    pthread_rwlock_wrlock(&power);
    int fd = open(file, O_RDWR);
    int lost = 0;
    for (int i = 0; i < PAGES; i++)
        if (pages[i].written && !pages[i].again && write_down(fd, pages[i].before, PAGE, (off_t)i * PAGE) == PAGE) lost++;
    sync_down(fd);
    fprintf(stderr, "CUT: %d pages have the content of their last sync again\n", lost);
    kill(getpid(), SIGKILL);
}

static void checkpoint(int fd, uint64_t lsn) {
    int late = 0;
    pthread_mutex_lock(&mutex);
    checkpoints++;
    for (int i = 0; i < PAGES; i++) {
        if (!pages[i].written || !pages[i].lsn || pages[i].lsn >= lsn) continue;
        if (!late++)
            fprintf(stderr,
                    "UNSYNCED: checkpoint %llu at LSN %llu: page %d, LSN %llu, was written %.1f ms ago, the last "
                    "fsync was called %.1f ms ago and returned %.1f ms ago, by %s thread\n",
                    (unsigned long long)checkpoints, (unsigned long long)lsn, i, (unsigned long long)pages[i].lsn,
                    (now() - pages[i].at) * 1e3, (now() - fsync_called) * 1e3, (now() - fsync_returned) * 1e3, fsync_thread == gettid() ? "this" : "another");
    }
    if (late) fprintf(stderr, "UNSYNCED: %d pages at this checkpoint\n", late);
    fprintf(stderr, "CHECKPOINT %llu\n", (unsigned long long)checkpoints);
    pthread_mutex_unlock(&mutex);
    if (late && getenv("CUT")) cut(fd);
}

ssize_t pwrite64(int fd, const void *buffer, size_t size, off_t at) {
    char name[PATH_MAX];
    size_t lsn;
    if (is_checkpoint(fd, size, at, name, &lsn)) {
        ssize_t written = write_down(fd, buffer, size, at);
        checkpoint(fd, be64((const unsigned char *)buffer + lsn));
        return written;
    }
    /* What is written with O_DSYNC is durable when the write returns. */
    if (!is(fd, getenv("WATCH"), name) || fcntl(fd, F_GETFL) & O_DSYNC || size % PAGE || at % PAGE || (at + (off_t)size) / PAGE > PAGES)
        return write_down(fd, buffer, size, at);
    pthread_rwlock_rdlock(&power);
    unsigned char *before = NULL;
    int reader = open(name, O_RDONLY);
    if (posix_memalign((void **)&before, 4096, size) || pread(reader, before, size, at) != (ssize_t)size)
        memset(before, 0, size);
    close(reader);
    ssize_t written = write_down(fd, buffer, size, at);
    pthread_mutex_lock(&mutex);
    if (!*file) fprintf(stderr, "WATCHED %s\n", name);
    strcpy(file, name);
    for (size_t i = 0; i < size / PAGE; i++) {
        struct page *page = &pages[(size_t)at / PAGE + i];
        if (!page->written) {
            if (!page->before) page->before = malloc(PAGE);
            memcpy(page->before, before + i * PAGE, PAGE);
        }
        page->again = page->written != 0;
        page->written = ++writes;
        page->lsn = be64((const unsigned char *)buffer + i * PAGE + 16);
        page->at = now();
    }
    pthread_mutex_unlock(&mutex);
    free(before);
    pthread_rwlock_unlock(&power);
    return written;
}

ssize_t pwrite(int fd, const void *buffer, size_t size, off_t at) { return pwrite64(fd, buffer, size, at); }

int fsync(int fd) {
    char name[PATH_MAX];
    if (!is(fd, getenv("WATCH"), name)) return sync_down(fd);
    pthread_mutex_lock(&mutex);
    uint64_t covered = writes;
    double called = now();
    pthread_mutex_unlock(&mutex);
    int result = sync_down(fd);
    const char *delay = getenv("DELAY");
    if (delay) usleep((useconds_t)atoi(delay) * 1000);
    if (result) return result;
    pthread_mutex_lock(&mutex);
    for (int i = 0; i < PAGES; i++)
        if (pages[i].written <= covered) pages[i].written = 0;
    fsync_thread = gettid();
    fsync_called = called;
    fsync_returned = now();
    pthread_mutex_unlock(&mutex);
    return result;
}

int fdatasync(int fd) { return fsync(fd); }
