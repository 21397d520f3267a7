/* Lanes as threads of the process. They are started by the first run and wait for the next one: a moment awake, since a
 * barrier is soon over and the next frame is often there already, then asleep. Runs that take half as long again as the
 * shortest one say that cores are busy with something else. For a while lanes then sleep at once, which leaves a core to
 * the others, or the caller does everything: whichever of the two took less time. Callers on several threads have a crew
 * of lanes each, up to EW_LANE_CREWS; who finds all of them at work waits for one.
 *
 * To bring threads of your own, define EW_CALLER_BRINGS_LANES and write ew_lanes_run and ew_lanes_meet. */
#ifndef EW_CALLER_BRINGS_LANES
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <time.h>

#ifndef EW_LANE_SPINS
#define EW_LANE_SPINS 1000 /* most looks at a counter before a lane goes to sleep: some tens of microseconds */
#endif
#ifndef EW_LANE_LATE
#define EW_LANE_LATE 1.5 /* a run of so many times the shortest one was late */
#endif
#define EW_LANE_TRIES 4 /* runs that a way is judged by: the system may put threads that wake on the same core at first */
#define EW_LANE_BUSY_S 0.1 /* cores that were busy are taken to be busy for so long, */
#define EW_LANE_BUSY_MOST_S 1.6 /* twice as long each time that they still are, up to this, */
#define EW_LANE_BUSY_RUNS 32 /* and so many runs more */
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

enum { EW_LANE_ASLEEP, EW_LANE_ALONE, EW_LANE_WAYS };

/* A counter in a line of the cache of its own, so that those who look at it disturb nobody else. */
typedef struct {
    uint32_t value;
    uint32_t apart[31];
} ew_lane_counter;

typedef struct {
    ew_lane_counter called; /* runs that lanes were called to */
    ew_lane_counter met[EW_LANE_COUNT]; /* barriers that each lane has reached */
    ew_lane_counter done[EW_LANE_COUNT]; /* the last run that each lane has finished */
    ew_lane_counter asleep; /* lanes that wait for `changed` */
    pthread_t threads[EW_LANE_COUNT];
    pthread_mutex_t runs; /* one at a time */
    pthread_mutex_t sleeps;
    pthread_cond_t changed;
    ew_lane_work work;
    void *context;
    const void *owner; /* the thread that it was started for, on whose cores its threads are */
    int32_t is_there, is_ending;
    int32_t spins; /* looks before a lane goes to sleep */
    int32_t late; /* runs that were, less those that were not; at most EW_LANE_TRIES */
    int32_t tried; /* runs since cores are busy, by which ways are judged */
    double took[EW_LANE_WAYS]; /* seconds of these runs */
    double shortest; /* seconds of a run in which lanes waited awake; 0 where there was none */
    double busy_s, busy_until; /* seconds, and the end by the clock */
} ew_lane_crew;

static ew_lane_crew ew_crews[EW_LANE_CREWS];
static pthread_once_t ew_crews_made = PTHREAD_ONCE_INIT;
static __thread ew_lane_crew *ew_own_crew; /* that this thread belongs to, or had last */

static int32_t ew_lane_has_come(const uint32_t *counter, uint32_t wanted)
{
    return (int32_t)(__atomic_load_n(counter, __ATOMIC_SEQ_CST) - wanted) >= 0;
}

static void ew_lane_wait(ew_lane_crew *crew, const uint32_t *counter, uint32_t wanted)
{
    const int32_t spins = __atomic_load_n(&crew->spins, __ATOMIC_RELAXED);
    for (int32_t look = 0; look < spins; look++) {
        if (ew_lane_has_come(counter, wanted))
            return;
        EW_LANE_PAUSE();
    }
    if (ew_lane_has_come(counter, wanted))
        return;
    pthread_mutex_lock(&crew->sleeps);
    __atomic_add_fetch(&crew->asleep.value, 1, __ATOMIC_SEQ_CST);
    while (!ew_lane_has_come(counter, wanted))
        pthread_cond_wait(&crew->changed, &crew->sleeps);
    __atomic_sub_fetch(&crew->asleep.value, 1, __ATOMIC_SEQ_CST);
    pthread_mutex_unlock(&crew->sleeps);
}

/* Who goes to sleep counts itself before it looks for the last time: either it sees the number, or is seen here. */
static void ew_lane_tell(ew_lane_crew *crew, uint32_t *counter, uint32_t number)
{
    __atomic_store_n(counter, number, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&crew->asleep.value, __ATOMIC_SEQ_CST)) {
        pthread_mutex_lock(&crew->sleeps);
        pthread_cond_broadcast(&crew->changed);
        pthread_mutex_unlock(&crew->sleeps);
    }
}

void ew_lanes_meet(int32_t lane, int32_t lanes)
{
    ew_lane_crew *const crew = ew_own_crew;
    uint32_t number;
    if (lanes == 1)
        return;
    number = crew->met[lane].value + 1;
    ew_lane_tell(crew, &crew->met[lane].value, number);
    for (int32_t other = 0; other < lanes; other++)
        if (other != lane)
            ew_lane_wait(crew, &crew->met[other].value, number);
}

/* A thread finds its crew and its lane by the counter that it is given. */
static void *ew_lane_thread(void *counter)
{
    const size_t place = (size_t)((uint8_t *)counter - (uint8_t *)ew_crews);
    ew_lane_crew *const crew = &ew_crews[place / sizeof(ew_lane_crew)];
    const int32_t lane = (int32_t)((ew_lane_counter *)counter - crew->done);
    ew_own_crew = crew;
    for (uint32_t run = crew->done[lane].value + 1;; run++) {
        ew_lane_wait(crew, &crew->called.value, run);
        if (crew->is_ending)
            return NULL;
        crew->work(crew->context, lane, EW_LANE_COUNT);
        ew_lane_tell(crew, &crew->done[lane].value, run);
    }
}

/* Ends so many threads, which wait for a run. */
static void ew_crew_end(ew_lane_crew *crew, int32_t count)
{
    crew->is_ending = 1;
    ew_lane_tell(crew, &crew->called.value, crew->called.value + 1);
    for (int32_t lane = 1; lane < count; lane++)
        pthread_join(crew->threads[lane], NULL);
    crew->is_ending = crew->is_there = 0;
}

/* A child process has none of its parent's threads. */
static void ew_crews_forget(void)
{
    for (int32_t i = 0; i < EW_LANE_CREWS; i++) {
        ew_crews[i].is_there = ew_crews[i].is_ending = 0;
        ew_crews[i].asleep.value = 0;
        pthread_mutex_init(&ew_crews[i].runs, NULL);
        pthread_mutex_init(&ew_crews[i].sleeps, NULL);
        pthread_cond_init(&ew_crews[i].changed, NULL);
    }
}

static void ew_crews_make(void)
{
    ew_crews_forget();
    (void)pthread_atfork(NULL, NULL, ew_crews_forget);
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
    crew->spins = EW_LANE_SPINS;
    crew->late = 0;
    crew->shortest = crew->busy_until = 0;
    crew->busy_s = EW_LANE_BUSY_S;
    sigfillset(&all); /* signals are for the threads of the caller */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (lane = 0; lane < EW_LANE_COUNT; lane++) {
        crew->met[lane].value = 0;
        crew->done[lane].value = crew->called.value;
    }
    for (lane = 1; lane < EW_LANE_COUNT; lane++)
        if (pthread_create(&crew->threads[lane], &attributes, ew_lane_thread, &crew->done[lane]))
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

static double ew_lane_clock(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void ew_crew_run(ew_lane_crew *crew, ew_lane_work work, void *context, int32_t spins)
{
    const uint32_t run = crew->called.value + 1;
    crew->work = work;
    crew->context = context;
    __atomic_store_n(&crew->spins, spins, __ATOMIC_RELAXED);
    ew_lane_tell(crew, &crew->called.value, run);
    work(context, 0, EW_LANE_COUNT);
    for (int32_t lane = 1; lane < EW_LANE_COUNT; lane++)
        ew_lane_wait(crew, &crew->done[lane].value, run);
}

/* The first runs while cores are busy have lanes that sleep, the next ones are the caller's alone; then the faster way. */
static int32_t ew_crew_way(const ew_lane_crew *crew)
{
    if (crew->tried < EW_LANE_WAYS * EW_LANE_TRIES)
        return crew->tried / EW_LANE_TRIES;
    return crew->took[EW_LANE_ALONE] < crew->took[EW_LANE_ASLEEP] ? EW_LANE_ALONE : EW_LANE_ASLEEP;
}

/* Whether cores are busy from now on, by the time of a run with lanes that wait awake. */
static void ew_crew_judge(ew_lane_crew *crew, double now, double seconds)
{
    if (crew->shortest == 0 || seconds < crew->shortest)
        crew->shortest = seconds;
    if (seconds <= EW_LANE_LATE * crew->shortest) {
        crew->shortest *= 1.001; /* clocks of cores change */
        if (crew->late > 0)
            crew->late--;
        else
            crew->busy_s = EW_LANE_BUSY_S;
        return;
    }
    if (++crew->late < EW_LANE_TRIES)
        return;
    crew->late = crew->tried = 0;
    for (int32_t way = 0; way < EW_LANE_WAYS; way++)
        crew->took[way] = 0;
    crew->busy_until = now + EW_LANE_BUSY_RUNS * seconds + crew->busy_s;
    if (crew->busy_s < EW_LANE_BUSY_MOST_S)
        crew->busy_s *= 2;
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
        const double begin = ew_lane_clock();
        const int32_t is_busy = begin < crew->busy_until, way = ew_crew_way(crew);
        double seconds;
        if (is_busy && way == EW_LANE_ALONE)
            work(context, 0, 1);
        else
            ew_crew_run(crew, work, context, is_busy ? 0 : EW_LANE_SPINS);
        seconds = ew_lane_clock() - begin;
        if (!is_busy)
            ew_crew_judge(crew, begin, seconds);
        else if (crew->tried < EW_LANE_WAYS * EW_LANE_TRIES) {
            crew->took[way] += seconds;
            crew->tried++;
        }
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
