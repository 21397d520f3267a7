/* What the runtime on this machine adds to the library: frames by pointers, a callback, the times of switch points. */
#if defined(__linux__)
#define _POSIX_C_SOURCE 200809L
#endif
#include <string.h>
#include <time.h>

#define APP_HAS_CALLBACKS
#include "app_.c"
#include "app_host_step.h" /* app_host_step, which calls app_step */

static void (*app_host_callback)(void);
static double *app_host_times;
static int32_t app_host_room, app_host_count;
static volatile int32_t app_host_taken; /* switches since the start */

void app_host_on_overtake(void (*callback)(void))
{
    app_host_callback = callback;
}

void app_switched(int32_t from, int32_t to)
{
    (void)from;
    (void)to;
    app_host_taken++;
}

int32_t app_host_switches(void)
{
    return app_host_taken;
}

void app_overtake(void)
{
    if (app_host_callback)
        app_host_callback();
}

/* Notes the times of the next switch points, in seconds. */
void app_host_note(double *times, int32_t room)
{
    app_host_times = times;
    app_host_room = room;
    app_host_count = 0;
}

void app_poll(void)
{
    if (app_host_count < app_host_room) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        app_host_times[app_host_count++] = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
    }
}
