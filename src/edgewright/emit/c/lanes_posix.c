/* Lanes as threads of the process. The first run starts them, and they wait for the next one: a moment awake, since a
 * barrier is soon over and the next frame is often there already, then asleep.
 *
 * Each lane compares the clock with the time that it computed: the system gave the rest to other threads. Where that is
 * much, or runs take longer than before, cores are busy. Then lanes that sleep at once are tried, which leave a core to
 * the others, and the caller alone; the fastest way is taken for a while.
 *
 * Callers on several threads have a crew of lanes each, up to EW_LANE_CREWS. A caller waits where all crews are at work.
 *
 * To bring threads of your own, define EW_CALLER_BRINGS_LANES and write ew_lanes_run and ew_lanes_meet. */
#ifndef EW_CALLER_BRINGS_LANES
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <time.h>

#ifndef EW_LANE_AWAKE_S
#define EW_LANE_AWAKE_S 1e-3 /* seconds that a lane waits awake before it goes to sleep: longer than a core takes to wake, */
#endif
#define EW_LANE_SPIN_S 1e-4 /* of these, seconds before it lets others on its core go first between looks */
#ifndef EW_LANE_LOST
#define EW_LANE_LOST 0.1 /* share of the time that the system may give to others before cores are taken to be busy */
#endif
#ifndef EW_LANE_TRIAL_S
#define EW_LANE_TRIAL_S 0.03 /* seconds of runs that a way is judged by: several slices of the system's time, */
#endif
#define EW_LANE_TRIAL_RUNS 2 /* and so many runs at least */
#define EW_LANE_LATE 1.5 /* runs of so many times the shortest ones may be late because cores are busy */
#define EW_LANE_HOLD 16 /* the fastest way is taken for so many times the runs of a trial, */
#define EW_LANE_HOLD_MOST 64 /* twice as many each time that cores are still busy, up to this */
#ifndef EW_LANE_STACK
#define EW_LANE_STACK (1 << 20) /* bytes of a thread's stack */
#endif
#ifndef EW_LANE_CREWS
#define EW_LANE_CREWS 8 /* runs at the same time, each on lanes of its own */
#endif

#if defined(__x86_64__) || defined(__i386__)
#define EW_LANE_PAUSE() __builtin_ia32_pause()
#elif defined(__aarch64__)
#define EW_LANE_PAUSE() __asm__ __volatile__("isb" ::: "memory")
#else
#define EW_LANE_PAUSE() __asm__ __volatile__("" ::: "memory")
#endif

enum { EW_LANE_AWAKE, EW_LANE_ASLEEP, EW_LANE_ALONE, EW_LANE_WAYS };

/* A counter in a line of the cache of its own, so that those who look at it disturb nobody else. */
typedef struct {
    uint32_t value;
    uint32_t apart[31];
} ew_lane_counter;

typedef struct {
    ew_lane_counter met; /* rounds of barriers that the lane has reached */
    ew_lane_counter done; /* the last run that it has finished */
    pthread_t thread;
    pthread_mutex_t sleeps;
    pthread_cond_t woken;
    uint32_t is_asleep;
    double slept, lost; /* seconds of its share of a run: asleep, and taken by other threads */
} ew_lane;

typedef struct {
    ew_lane_counter called; /* runs that lanes were called to */
    ew_lane lanes[EW_LANE_COUNT];
    pthread_mutex_t runs; /* one at a time */
    ew_lane_work work;
    void *context;
    const void *owner; /* the thread that it was started for, on whose cores its threads are */
    int32_t is_there, is_ending;
    int32_t way; /* how runs are shared now */
    int32_t is_trying; /* the ways one after the other, since cores are busy */
    int32_t ran; /* runs of this way so far, */
    double seconds, lost; /* what they took, and the most that a lane of each lost */
    double means[EW_LANE_WAYS]; /* seconds of a run, as tried */
    double shortest; /* mean of runs in lanes that waited awake; 0 where there was none */
    int32_t held, hold; /* runs for which the way stays, and how many times those of a trial */
} ew_lane_crew;

static ew_lane_crew ew_crews[EW_LANE_CREWS];
static pthread_once_t ew_crews_made = PTHREAD_ONCE_INIT;
static __thread ew_lane_crew *ew_own_crew; /* that this thread belongs to, or had last */

static double ew_lane_clock(clockid_t clock)
{
    struct timespec now;
    (void)clock_gettime(clock, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int32_t ew_lane_has_come(const uint32_t *counter, uint32_t wanted)
{
    return (int32_t)(__atomic_load_n(counter, __ATOMIC_SEQ_CST) - wanted) >= 0;
}

static void ew_lane_wait(ew_lane_crew *crew, int32_t lane, const uint32_t *counter, uint32_t wanted)
{
    ew_lane *const own = &crew->lanes[lane];
    double begin, waited = 0;
    if (ew_lane_has_come(counter, wanted))
        return;
    begin = ew_lane_clock(CLOCK_MONOTONIC);
    while (waited < EW_LANE_AWAKE_S && __atomic_load_n(&crew->way, __ATOMIC_RELAXED) == EW_LANE_AWAKE) {
        for (int32_t look = 0; look < 16; look++) {
            EW_LANE_PAUSE();
            if (ew_lane_has_come(counter, wanted))
                return;
        }
        if (waited > EW_LANE_SPIN_S)
            (void)sched_yield();
        waited = ew_lane_clock(CLOCK_MONOTONIC) - begin;
    }
    begin = ew_lane_clock(CLOCK_MONOTONIC);
    pthread_mutex_lock(&own->sleeps);
    __atomic_store_n(&own->is_asleep, 1, __ATOMIC_SEQ_CST);
    while (!ew_lane_has_come(counter, wanted))
        pthread_cond_wait(&own->woken, &own->sleeps);
    __atomic_store_n(&own->is_asleep, 0, __ATOMIC_SEQ_CST);
    pthread_mutex_unlock(&own->sleeps);
    own->slept += ew_lane_clock(CLOCK_MONOTONIC) - begin;
}

/* Who goes to sleep says so before it looks for the last time: either it sees the number, or is seen here. */
static void ew_lane_wake(ew_lane *other)
{
    if (__atomic_load_n(&other->is_asleep, __ATOMIC_SEQ_CST)) {
        pthread_mutex_lock(&other->sleeps);
        pthread_cond_signal(&other->woken);
        pthread_mutex_unlock(&other->sleeps);
    }
}

/* In each round a lane waits for the one twice as far behind it as in the round before, which has heard of all between. */
void ew_lanes_meet(int32_t lane, int32_t lanes)
{
    ew_lane_crew *const crew = ew_own_crew;
    for (int32_t step = 1; step < lanes; step *= 2) {
        const uint32_t round = crew->lanes[lane].met.value + 1;
        __atomic_store_n(&crew->lanes[lane].met.value, round, __ATOMIC_SEQ_CST);
        ew_lane_wake(&crew->lanes[(lane + step) % lanes]);
        ew_lane_wait(crew, lane, &crew->lanes[(lane + lanes - step) % lanes].met.value, round);
    }
}

/* The share of one lane, and what it lost of its time. */
static void ew_lane_share(ew_lane_crew *crew, int32_t lane)
{
    ew_lane *const own = &crew->lanes[lane];
    const double begin = ew_lane_clock(CLOCK_MONOTONIC), computed = ew_lane_clock(CLOCK_THREAD_CPUTIME_ID);
    double spent;
    own->slept = 0;
    crew->work(crew->context, lane, EW_LANE_COUNT);
    spent = ew_lane_clock(CLOCK_THREAD_CPUTIME_ID) - computed;
    own->lost = ew_lane_clock(CLOCK_MONOTONIC) - begin - own->slept - spent;
}

static void ew_lanes_call(ew_lane_crew *crew)
{
    __atomic_store_n(&crew->called.value, crew->called.value + 1, __ATOMIC_SEQ_CST);
    for (int32_t lane = 1; lane < EW_LANE_COUNT; lane++)
        ew_lane_wake(&crew->lanes[lane]);
}

/* A thread finds its crew and its number by the lane that it is given. */
static void *ew_lane_thread(void *given)
{
    ew_lane *const own = given;
    ew_lane_crew *const crew = &ew_crews[(size_t)((uint8_t *)given - (uint8_t *)ew_crews) / sizeof(ew_lane_crew)];
    const int32_t lane = (int32_t)(own - crew->lanes);
    ew_own_crew = crew;
    for (uint32_t run = own->done.value + 1;; run++) {
        ew_lane_wait(crew, lane, &crew->called.value, run);
        if (crew->is_ending)
            return NULL;
        ew_lane_share(crew, lane);
        __atomic_store_n(&own->done.value, run, __ATOMIC_SEQ_CST);
        ew_lane_wake(&crew->lanes[0]);
    }
}

/* Ends so many threads, which wait for a run. */
static void ew_crew_end(ew_lane_crew *crew, int32_t count)
{
    crew->is_ending = 1;
    ew_lanes_call(crew);
    for (int32_t lane = 1; lane < count; lane++)
        pthread_join(crew->lanes[lane].thread, NULL);
    crew->is_ending = crew->is_there = 0;
}

/* A child process has none of its parent's threads. */
static void ew_crews_forget(void)
{
    for (int32_t i = 0; i < EW_LANE_CREWS; i++) {
        ew_crews[i].is_there = ew_crews[i].is_ending = 0;
        pthread_mutex_init(&ew_crews[i].runs, NULL);
        for (int32_t lane = 0; lane < EW_LANE_COUNT; lane++) {
            ew_crews[i].lanes[lane].is_asleep = 0;
            pthread_mutex_init(&ew_crews[i].lanes[lane].sleeps, NULL);
            pthread_cond_init(&ew_crews[i].lanes[lane].woken, NULL);
        }
    }
}

static void ew_crews_make(void)
{
    ew_crews_forget();
    (void)pthread_atfork(NULL, NULL, ew_crews_forget);
}

static void ew_crew_take_way(ew_lane_crew *crew, int32_t way)
{
    __atomic_store_n(&crew->way, way, __ATOMIC_RELAXED);
    crew->ran = 0;
    crew->seconds = crew->lost = 0;
}

static int32_t ew_crew_begin(ew_lane_crew *crew)
{
    sigset_t all, before;
    pthread_attr_t attributes;
    int32_t lane;
    if (crew->is_there)
        return 1;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, EW_LANE_STACK);
    crew->shortest = 0;
    crew->hold = EW_LANE_HOLD;
    crew->held = crew->is_trying = 0;
    ew_crew_take_way(crew, EW_LANE_AWAKE);
    sigfillset(&all); /* signals are for the threads of the caller */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (lane = 0; lane < EW_LANE_COUNT; lane++) {
        crew->lanes[lane].met.value = 0;
        crew->lanes[lane].done.value = crew->called.value;
    }
    for (lane = 1; lane < EW_LANE_COUNT; lane++)
        if (pthread_create(&crew->lanes[lane].thread, &attributes, ew_lane_thread, &crew->lanes[lane]))
            break;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    crew->is_there = lane == EW_LANE_COUNT;
    if (!crew->is_there)
        ew_crew_end(crew, lane);
    return crew->is_there;
}

/* A crew for a run: the one that this thread had before, or one without threads, or any that is free; its threads are
 * then started again, on the cores of this one. */
static ew_lane_crew *ew_crew_take(void)
{
    ew_lane_crew *const own = ew_own_crew;
    if (own && pthread_mutex_trylock(&own->runs) == 0) {
        if (own->owner == &ew_own_crew)
            return own;
        pthread_mutex_unlock(&own->runs);
    }
    for (int32_t with_threads = 0; with_threads < 2; with_threads++)
        for (int32_t i = 0; i < EW_LANE_CREWS; i++)
            if (pthread_mutex_trylock(&ew_crews[i].runs) == 0) {
                if (with_threads || !ew_crews[i].is_there)
                    return &ew_crews[i];
                pthread_mutex_unlock(&ew_crews[i].runs);
            }
    pthread_mutex_lock(&ew_crews[0].runs);
    return &ew_crews[0];
}

/* The seconds of a run in lanes, and the most that one of them lost. */
static void ew_crew_run(ew_lane_crew *crew, ew_lane_work work, void *context)
{
    double lost;
    crew->work = work;
    crew->context = context;
    ew_lanes_call(crew);
    ew_lane_share(crew, 0);
    lost = crew->lanes[0].lost;
    for (int32_t lane = 1; lane < EW_LANE_COUNT; lane++) {
        ew_lane_wait(crew, 0, &crew->lanes[lane].done.value, crew->called.value);
        if (crew->lanes[lane].lost > lost)
            lost = crew->lanes[lane].lost;
    }
    crew->lost += lost;
}

static int32_t ew_crew_fastest(const ew_lane_crew *crew)
{
    int32_t best = EW_LANE_AWAKE;
    for (int32_t way = 0; way < EW_LANE_WAYS; way++)
        if (crew->means[way] < crew->means[best])
            best = way;
    return best;
}

/* Whether cores are busy, by the mean of runs in lanes that waited awake. */
static int32_t ew_crew_is_disturbed(ew_lane_crew *crew, double mean)
{
    if (crew->shortest == 0 || mean < crew->shortest)
        crew->shortest = mean;
    if (mean > EW_LANE_LATE * crew->shortest || crew->lost > EW_LANE_LOST * crew->seconds)
        return 1;
    crew->shortest *= 1.01; /* clocks of cores change */
    crew->hold = EW_LANE_HOLD;
    return 0;
}

/* Which way the next runs go: lanes that wait awake, until cores are busy; then each way is tried, and the fastest taken. */
static void ew_crew_judge(ew_lane_crew *crew, double seconds)
{
    double mean;
    int32_t way = EW_LANE_AWAKE;
    crew->ran++;
    crew->seconds += seconds;
    if (crew->ran < crew->held || crew->ran < EW_LANE_TRIAL_RUNS || crew->seconds < EW_LANE_TRIAL_S)
        return;
    mean = crew->means[crew->way] = crew->seconds / crew->ran;
    crew->held = 0;
    if (crew->is_trying && crew->way == EW_LANE_ALONE) {
        way = ew_crew_fastest(crew);
        crew->held = crew->hold * crew->ran;
        crew->hold = crew->hold < EW_LANE_HOLD_MOST ? 2 * crew->hold : crew->hold;
        crew->is_trying = 0;
    } else if (crew->is_trying || (crew->way == EW_LANE_AWAKE && ew_crew_is_disturbed(crew, mean))) {
        crew->is_trying = 1;
        way = crew->way + 1;
    }
    ew_crew_take_way(crew, way);
}

/* Where no threads are to be had, the caller does everything. */
void ew_lanes_run(ew_lane_work work, void *context)
{
    ew_lane_crew *crew;
    pthread_once(&ew_crews_made, ew_crews_make);
    crew = ew_own_crew = ew_crew_take();
    if (crew->owner != &ew_own_crew && crew->is_there)
        ew_crew_end(crew, EW_LANE_COUNT);
    crew->owner = &ew_own_crew;
    if (!ew_crew_begin(crew)) {
        work(context, 0, 1);
    } else {
        const double begin = ew_lane_clock(CLOCK_MONOTONIC);
        if (crew->way == EW_LANE_ALONE)
            work(context, 0, 1);
        else
            ew_crew_run(crew, work, context);
        ew_crew_judge(crew, ew_lane_clock(CLOCK_MONOTONIC) - begin);
    }
    pthread_mutex_unlock(&crew->runs);
}

void ew_lanes_stop(void)
{
    pthread_once(&ew_crews_made, ew_crews_make);
    for (int32_t i = 0; i < EW_LANE_CREWS; i++) {
        pthread_mutex_lock(&ew_crews[i].runs);
        if (ew_crews[i].is_there)
            ew_crew_end(&ew_crews[i], EW_LANE_COUNT);
        pthread_mutex_unlock(&ew_crews[i].runs);
    }
}
#endif
