/* Threads that drive the application on this machine. Each runs its own parts, frame by frame, as soon as the library
 * lets them start, and notes when they started and ended. */
static uint32_t app_host_ended[APP_PARTS]; /* frames that each part has ended */

static double app_host_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Whether a network that this one shares tensors with is still at an earlier frame. */
static int32_t app_host_is_ahead(int32_t part)
{
    const uint32_t own = app_host_ended[part];
    uint32_t n;
    for (n = 0; n < APP_PARTS; n++) {
        if ((app_host_mates[part] >> n & 1u) && (int32_t)(__atomic_load_n(&app_host_ended[n], __ATOMIC_ACQUIRE) - own) < 0)
            return 1;
    }
    return 0;
}

/* Runs these parts `count` times; `ends` and `times` are those of all parts. The status of a run that failed, or 0. */
int32_t app_host_drive(const int32_t *parts, int32_t size, int32_t count, void *const *const *ends, double *const *times)
{
    int32_t frame, n, failed = APP_OK;
    for (frame = 0; frame < count; frame++) {
        for (n = 0; n < size; n++) {
            const int32_t part = parts[n];
            double *time = times[part] + 2 * frame;
            int32_t status;
            while (app_host_is_ahead(part))
                sched_yield();
            for (;;) {
                time[0] = app_host_now();
                status = app_host_run(part, ends[frame % APP_VARIETY * APP_PARTS + part]);
                if (status != APP_BUSY && status != APP_EMPTY)
                    break;
                sched_yield();
            }
            time[1] = app_host_now();
            failed = status != APP_OK ? status : failed;
            __atomic_add_fetch(&app_host_ended[part], 1u, __ATOMIC_RELEASE);
        }
    }
    return failed;
}
