/* Threads that drive the application on this machine. Each runs its own parts, frame by frame, as soon as the library
 * lets them start, and notes when they start and end. */
#if defined(__linux__)
#define _POSIX_C_SOURCE 200809L
#endif
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <time.h>

#define APP_HAS_POLL
#define APP_WAIT() (app_poll(), sched_yield())
#include "app.c"
/* Behind it: app_host_run, which calls a part's run function, app_host_mates, APP_PARTS and APP_VARIETY. */

#define APP_MOMENT 1000000 /* ns until a refused run is tried again, although nothing seems to have changed */

static pthread_mutex_t app_host_guard = PTHREAD_MUTEX_INITIALIZER; /* of the variables below */
static pthread_cond_t app_host_change = PTHREAD_COND_INITIALIZER;
static uint32_t app_host_changes, app_host_frames[APP_PARTS]; /* frames that each part has ended */

/* Called between stages, when a slot may have been given back, and while a row is waited for. */
void app_poll(void)
{
    pthread_mutex_lock(&app_host_guard);
    app_host_changes++;
    pthread_cond_broadcast(&app_host_change);
    pthread_mutex_unlock(&app_host_guard);
}

static void app_host_pause(void)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += APP_MOMENT;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&app_host_change, &app_host_guard, &until);
}

static double app_host_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Whether a network that hands tensors over to this one's, or takes them, is still at an earlier frame. */
static int32_t app_host_is_ahead(int32_t part)
{
    uint32_t n;
    for (n = 0; n < APP_PARTS; n++) {
        if ((app_host_mates[part] >> n & 1u) && app_host_frames[n] < app_host_frames[part])
            return 1;
    }
    return 0;
}

/* The status of a run, started as soon as possible; when it started and ended. */
static int32_t app_host_once(int32_t part, void *const *ends, double *time)
{
    int32_t status = APP_BUSY;
    pthread_mutex_lock(&app_host_guard);
    while (app_host_is_ahead(part))
        pthread_cond_wait(&app_host_change, &app_host_guard);
    while (status == APP_BUSY || status == APP_EMPTY) {
        const uint32_t before = app_host_changes;
        pthread_mutex_unlock(&app_host_guard);
        time[0] = app_host_seconds();
        status = app_host_run(part, ends);
        time[1] = app_host_seconds();
        pthread_mutex_lock(&app_host_guard);
        if ((status == APP_BUSY || status == APP_EMPTY) && app_host_changes == before)
            app_host_pause();
    }
    app_host_frames[part]++;
    pthread_mutex_unlock(&app_host_guard);
    app_poll();
    return status;
}

/* Runs these parts `count` times; `ends` are those of each frame and part, `times` those of each part. The status of a
 * run that failed, or 0. */
int32_t app_host_drive(const int32_t *parts, int32_t size, int32_t count, void *const *const *ends, double *const *times)
{
    int32_t frame, n, failed = APP_OK;
    for (frame = 0; frame < count; frame++) {
        for (n = 0; n < size; n++) {
            void *const *const own = ends[frame % APP_VARIETY * APP_PARTS + parts[n]];
            const int32_t status = app_host_once(parts[n], own, times[parts[n]] + 2 * frame);
            failed = status != APP_OK ? status : failed;
        }
    }
    return failed;
}
