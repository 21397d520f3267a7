/* Lanes as threads of the process. They are started by the first run and wait for the next one: a moment awake, since a
 * meeting is soon over and the next frame is often there already, then asleep.
 *
 * To bring threads of your own, define EW_CALLER_BRINGS_LANES and write ew_lanes_run and ew_lanes_meet. */
#ifndef EW_CALLER_BRINGS_LANES
#include <pthread.h>
#include <signal.h>

#ifndef EW_LANE_SPINS
#define EW_LANE_SPINS 4000 /* looks at a counter before a lane goes to sleep: some tens of microseconds */
#endif
#ifndef EW_LANE_STACK
#define EW_LANE_STACK (1 << 20) /* bytes of a thread's stack */
#endif

#if defined(__x86_64__) || defined(__i386__)
#define EW_LANE_PAUSE() __builtin_ia32_pause()
#elif defined(__aarch64__)
#define EW_LANE_PAUSE() __asm__ __volatile__("isb" ::: "memory")
#else
#define EW_LANE_PAUSE() __asm__ __volatile__("" ::: "memory")
#endif

/* A counter in a line of the cache of its own, so that those who look at it disturb nobody else. */
typedef struct {
    uint32_t value;
    uint32_t apart[31];
} ew_lane_counter;

static struct {
    ew_lane_counter called; /* runs that lanes were called to */
    ew_lane_counter met[EW_LANE_COUNT]; /* meetings that each lane has come to */
    ew_lane_counter done[EW_LANE_COUNT]; /* the last run that each lane has finished */
    ew_lane_counter asleep; /* lanes that wait for `changed` */
    pthread_t threads[EW_LANE_COUNT];
    ew_lane_work work;
    void *context;
    int32_t is_there, is_ending, is_watching_forks;
} ew_team;

static pthread_mutex_t ew_team_runs = PTHREAD_MUTEX_INITIALIZER; /* one run at a time */
static pthread_mutex_t ew_team_sleeps = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ew_team_changed = PTHREAD_COND_INITIALIZER;

static int32_t ew_lane_has_come(const uint32_t *counter, uint32_t wanted)
{
    return (int32_t)(__atomic_load_n(counter, __ATOMIC_SEQ_CST) - wanted) >= 0;
}

static void ew_lane_wait(const uint32_t *counter, uint32_t wanted)
{
    for (int32_t look = 0; look < EW_LANE_SPINS; look++) {
        if (ew_lane_has_come(counter, wanted))
            return;
        EW_LANE_PAUSE();
    }
    pthread_mutex_lock(&ew_team_sleeps);
    __atomic_add_fetch(&ew_team.asleep.value, 1, __ATOMIC_SEQ_CST);
    while (!ew_lane_has_come(counter, wanted))
        pthread_cond_wait(&ew_team_changed, &ew_team_sleeps);
    __atomic_sub_fetch(&ew_team.asleep.value, 1, __ATOMIC_SEQ_CST);
    pthread_mutex_unlock(&ew_team_sleeps);
}

/* Who goes to sleep counts itself before it looks for the last time: either it sees the number, or is seen here. */
static void ew_lane_tell(uint32_t *counter, uint32_t number)
{
    __atomic_store_n(counter, number, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&ew_team.asleep.value, __ATOMIC_SEQ_CST)) {
        pthread_mutex_lock(&ew_team_sleeps);
        pthread_cond_broadcast(&ew_team_changed);
        pthread_mutex_unlock(&ew_team_sleeps);
    }
}

void ew_lanes_meet(int32_t lane, int32_t lanes)
{
    const uint32_t number = ew_team.met[lane].value + 1;
    if (lanes == 1)
        return;
    ew_lane_tell(&ew_team.met[lane].value, number);
    for (int32_t other = 0; other < lanes; other++)
        if (other != lane)
            ew_lane_wait(&ew_team.met[other].value, number);
}

static void *ew_lane_thread(void *counter)
{
    const int32_t lane = (int32_t)((ew_lane_counter *)counter - ew_team.done);
    for (uint32_t run = ew_team.done[lane].value + 1;; run++) {
        ew_lane_wait(&ew_team.called.value, run);
        if (ew_team.is_ending)
            return NULL;
        ew_team.work(ew_team.context, lane, EW_LANE_COUNT);
        ew_lane_tell(&ew_team.done[lane].value, run);
    }
}

/* Ends so many threads, which wait for a run. */
static void ew_team_end(int32_t count)
{
    ew_team.is_ending = 1;
    ew_lane_tell(&ew_team.called.value, ew_team.called.value + 1);
    for (int32_t lane = 1; lane < count; lane++)
        pthread_join(ew_team.threads[lane], NULL);
    ew_team.is_ending = ew_team.is_there = 0;
}

/* A child process has none of its parent's threads. */
static void ew_team_forget(void)
{
    ew_team.is_there = ew_team.is_ending = 0;
    ew_team.asleep.value = 0;
    pthread_mutex_init(&ew_team_runs, NULL);
    pthread_mutex_init(&ew_team_sleeps, NULL);
    pthread_cond_init(&ew_team_changed, NULL);
}

static int32_t ew_team_begin(void)
{
    sigset_t all, before;
    pthread_attr_t attributes;
    int32_t lane;
    if (ew_team.is_there)
        return 1;
    if (!ew_team.is_watching_forks)
        ew_team.is_watching_forks = pthread_atfork(NULL, NULL, ew_team_forget) == 0;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, EW_LANE_STACK);
    sigfillset(&all); /* signals are for the threads of the caller */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (lane = 0; lane < EW_LANE_COUNT; lane++) {
        ew_team.met[lane].value = 0;
        ew_team.done[lane].value = ew_team.called.value;
    }
    for (lane = 1; lane < EW_LANE_COUNT; lane++)
        if (pthread_create(&ew_team.threads[lane], &attributes, ew_lane_thread, &ew_team.done[lane]))
            break;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    ew_team.is_there = lane == EW_LANE_COUNT;
    if (!ew_team.is_there)
        ew_team_end(lane);
    return ew_team.is_there;
}

/* Where no threads are to be had, the caller does everything. */
void ew_lanes_run(ew_lane_work work, void *context)
{
    pthread_mutex_lock(&ew_team_runs);
    if (ew_team_begin()) {
        const uint32_t run = ew_team.called.value + 1;
        ew_team.work = work;
        ew_team.context = context;
        ew_lane_tell(&ew_team.called.value, run);
        work(context, 0, EW_LANE_COUNT);
        for (int32_t lane = 1; lane < EW_LANE_COUNT; lane++)
            ew_lane_wait(&ew_team.done[lane].value, run);
    } else {
        work(context, 0, 1);
    }
    pthread_mutex_unlock(&ew_team_runs);
}

void ew_lanes_stop(void)
{
    pthread_mutex_lock(&ew_team_runs);
    if (ew_team.is_there)
        ew_team_end(EW_LANE_COUNT);
    pthread_mutex_unlock(&ew_team_runs);
}
#endif
