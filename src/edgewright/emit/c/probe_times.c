/* What a library that is profiled calls where a stage begins: it notes the time.
 *
 * EW_STAGE_COUNT is the number of stages, EW_CLOCK the clock. */
#include <stdint.h>
#include <time.h>
int64_t ew_stage_times[EW_STAGE_COUNT + 1];
int32_t ew_is_probing;
void ew_probe(int32_t stage);
int64_t ew_probe_cost(void);

static int64_t now(void)
{
    struct timespec time;
    clock_gettime(EW_CLOCK, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

void ew_probe(int32_t stage)
{
    if (ew_is_probing)
        ew_stage_times[stage] = now();
}

/* Nanoseconds of a thousand probes. */
int64_t ew_probe_cost(void)
{
    const int64_t start = now();
    for (int32_t i = 0; i < 1000; i++)
        ew_probe(0);
    return now() - start;
}
