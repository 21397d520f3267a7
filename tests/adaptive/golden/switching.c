/* app: which scenario computes the next frame, and the arena that all of them share. */
#if defined(__linux__) && !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 200809L
#endif
#include "app.h"
#include "app_probe.h"
#include "app_kernels.h"

#define APP_IS_SHARED 1 /* whether threads or interrupts change the same words */
#if defined(APP_LOCK)
#elif defined(APP_ONE_THREAD)
#define APP_LOCK()
#define APP_UNLOCK()
#elif defined(__ZEPHYR__)
#include <zephyr/kernel.h>
#if defined(CONFIG_SMP) /* irq_lock would keep out this core's threads alone */
static struct k_spinlock guard;
#define APP_LOCK() const k_spinlock_key_t key = k_spin_lock(&guard)
#define APP_UNLOCK() k_spin_unlock(&guard, key)
#else
#define APP_LOCK() const unsigned int key = irq_lock()
#define APP_UNLOCK() irq_unlock(key)
#endif
#elif defined(ESP_PLATFORM)
#include <freertos/FreeRTOS.h>
#include <freertos/task.h>
static portMUX_TYPE guard = portMUX_INITIALIZER_UNLOCKED;
#define APP_LOCK() portENTER_CRITICAL_SAFE(&guard)
#define APP_UNLOCK() portEXIT_CRITICAL_SAFE(&guard)
#elif defined(APP_FREERTOS)
#include <FreeRTOS.h>
#include <task.h>
#ifndef APP_IN_ISR
#if defined(__GNUC__) && defined(__ARM_ARCH_PROFILE) && __ARM_ARCH_PROFILE == 'M'
static inline uint32_t exception(void)
{
    uint32_t number;
    __asm__ volatile("mrs %0, ipsr" : "=r"(number));
    return number;
}
#define APP_IN_ISR() (exception() != 0u)
#else
#define APP_IN_ISR() 0
#endif
#endif
static inline UBaseType_t locked(void)
{
    if (APP_IN_ISR())
        return taskENTER_CRITICAL_FROM_ISR();
    taskENTER_CRITICAL();
    return 0;
}
static inline void unlocked(UBaseType_t key)
{
    if (APP_IN_ISR()) {
        taskEXIT_CRITICAL_FROM_ISR(key);
    } else {
        taskEXIT_CRITICAL();
    }
    (void)key;
}
#define APP_LOCK() const UBaseType_t key = locked()
#define APP_UNLOCK() unlocked(key)
#elif APP_IS_SHARED && (defined(__linux__) || defined(__APPLE__) || defined(__unix__))
#include <pthread.h>
#include <signal.h>
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
#ifdef SIG_BLOCK /* a signal that starts a network must not come while its own thread holds the mutex */
static inline sigset_t locked(void)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    pthread_mutex_lock(&guard);
    return before;
}
static inline void unlocked(const sigset_t *before)
{
    pthread_mutex_unlock(&guard);
    pthread_sigmask(SIG_SETMASK, before, 0);
}
#define APP_LOCK() const sigset_t key = locked()
#define APP_UNLOCK() unlocked(&key)
#else
#define APP_LOCK() pthread_mutex_lock(&guard)
#define APP_UNLOCK() pthread_mutex_unlock(&guard)
#endif
#elif defined(__GNUC__) && ((defined(__ARM_ARCH_PROFILE) && __ARM_ARCH_PROFILE == 'M') || defined(__riscv))
#if defined(__riscv) /* bit 3 of mstatus; spelled as numbers for assemblers that want to be told of Zicsr */
static inline unsigned long masked(void)
{
    unsigned long key;
    __asm__ volatile(".insn i 0x73, 7, %0, x8, 0x300 # csrrci %0, mstatus, 8" : "=r"(key)::"memory");
    return key & 8u;
}
static inline void unmasked(unsigned long key)
{
    __asm__ volatile(".insn i 0x73, 2, x0, %0, 0x300 # csrs mstatus, %0" ::"r"(key) : "memory");
}
#else
static inline unsigned long masked(void)
{
    unsigned long key;
    __asm__ volatile("mrs %0, primask\n\tcpsid i" : "=r"(key)::"memory");
    return key;
}
static inline void unmasked(unsigned long key)
{
    __asm__ volatile("msr primask, %0" ::"r"(key) : "memory");
}
#endif
#if !defined(APP_TWO_CORES)
#define APP_LOCK() const unsigned long key = masked()
#define APP_UNLOCK() unmasked(key)
#else
#if defined(APP_SPINLOCK) /* reads as zero while the other core has it; any write gives it back */
#define APP_TAKEN() (*(volatile uint32_t *)(APP_SPINLOCK) == 0u)
#define APP_GIVE() (*(volatile uint32_t *)(APP_SPINLOCK) = 1u)
#elif defined(__GCC_HAVE_SYNC_COMPARE_AND_SWAP_4) || defined(__riscv_atomic)
static uint32_t guard;
#define APP_TAKEN() (__atomic_exchange_n(&guard, 1u, __ATOMIC_SEQ_CST) != 0u)
#define APP_GIVE() __atomic_store_n(&guard, 0u, __ATOMIC_SEQ_CST)
#else
#error "this core has no atomics: define APP_SPINLOCK as the address of a hardware spinlock (RP2040: 0xd000017c)"
#endif
static inline unsigned long locked(void)
{
    const unsigned long key = masked();
    while (APP_TAKEN()) {
    }
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    return key;
}
static inline void unlocked(unsigned long key)
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    APP_GIVE();
    unmasked(key);
}
#define APP_LOCK() const unsigned long key = locked()
#define APP_UNLOCK() unlocked(key)
#endif
#elif APP_IS_SHARED
#error "no lock is known for this system: define APP_LOCK() and APP_UNLOCK(), or APP_FREERTOS, or APP_ONE_THREAD"
#else
#define APP_LOCK()
#define APP_UNLOCK()
#endif

APP_SECTION(ram) APP_ALIGNED(16) static uint8_t arena[APP_ARENA_SIZE];
static volatile int32_t requested = -1; /* the scenario asked for; -1: rules decide */
static volatile int32_t current = 0;
static volatile uint32_t running; /* a bit for each scenario that computes a frame */
static volatile uint32_t active; /* a bit for each rule */
static volatile int32_t idle = 0; /* what applies while no rule is active: the fallback once a signal has a value */
static volatile uint32_t now, switched_at; /* milliseconds */
static volatile uint32_t has_switched;
static volatile uint32_t done[2]; /* steps of the frame under way that have ended */
/* The steps before each stage of a scenario, and all of them. */
static const uint8_t first_0[] = {0, 8, 9, 10};
static const uint8_t first_1[] = {0, 8, 16, 17, 18};
static const uint8_t *const first[] = {first_0, first_1};
static volatile uint32_t depth, inside; /* frames under way, and those that are being overtaken */
/* By scenario, runs of ended steps: one past the last of the run, and a bit for each scenario that overwrites nothing
 * there which the frame still needs. */
static const uint8_t overtakers_0[] = {1, 0, 10, 2, 11, 0};
static const uint8_t overtakers_1[] = {1, 0, 18, 1, 19, 0};
static const uint8_t *const overtakers[] = {overtakers_0, overtakers_1};

#ifndef APP_HAS_CALLBACKS /* define it where the compiler knows no weak functions */
#ifdef __GNUC__
__attribute__((weak))
#endif
void app_switched(int32_t from, int32_t to)
{
    (void)from;
    (void)to;
}
#ifdef __GNUC__
__attribute__((weak))
#endif
void app_poll(void)
{
}
#ifdef __GNUC__
__attribute__((weak))
#endif
void app_overtake(void)
{
}
#endif

void app_request(int32_t scenario) {
    if (scenario >= 0 && scenario < 2)
        requested = scenario;
}

int32_t app_current(void) {
    return current;
}

void app_release(void) {
    requested = -1;
}

void app_signal(int32_t signal, float value) {
    APP_LOCK();
    {
        const uint32_t was = active;
        uint32_t is = was;
        if (signal == 0 && (was >> 0 & 1u ? value > 0.35f : value < 0.25f))
            is ^= 1u << 0;
        active = is;
        if (value == value) /* a number */
            idle = 0;
        if ((is & ~was) || (is & (0u - is)) != (was & (0u - was))) /* a new rule, or another one that is first */
            requested = -1;
    }
    APP_UNLOCK();
}

void app_time(uint32_t milliseconds) {
    now = milliseconds;
}

/* The scenario that is wanted, if it is time to switch to it, and else -1. */
static int32_t due(void) {
    int32_t wanted = requested;
    if (wanted < 0)
        wanted = active >> 0 & 1u ? 0 : idle;
    if (wanted == current || (has_switched && now - switched_at < 1000u))
        return -1;
    return wanted;
}

static void take(int32_t to) {
    current = to;
    switched_at = now;
    has_switched = 1;
}

static int32_t compute(int32_t which, const float *in_input, float *out_gemm1) {
    switch (which) {
    case 0:
        eco_run_in(arena, in_input, out_gemm1);
        return 0;
    case 1:
        full_run_in(arena, in_input, out_gemm1);
        return 0;
    default:
        return 1;
    }
}

/* Whether a scenario may run before the rest of this frame. */
static int32_t can_overtake(int32_t frame, int32_t to) {
    const uint8_t *run = overtakers[frame];
    while (done[frame] >= run[0])
        run += 2;
    return run[1] >> to & 1;
}

/* Lets a scenario that is wanted run first, where it overwrites nothing that frames under way still need. */
static void let_overtake(void) {
    int32_t from, to;
    app_poll();
    to = due();
    if (to < 0)
        return;
    for (int32_t n = 0; n < 2; n++)
        if ((running >> n & 1u) && !can_overtake(n, to))
            return;
    from = current;
    take(to);
    app_switched(from, to);
    inside++;
    app_overtake();
    inside--;
}

void app_at(int32_t which, int32_t stage) {
    done[which] = first[which][stage];
    let_overtake();
}

void app_at_row(int32_t which) {
    done[which]++;
    let_overtake();
}

int32_t app_step(const float *in_input, float *out_gemm1) {
    int32_t which, to, status;
    if (depth != inside)
        return APP_BUSY;
    to = depth ? -1 : due(); /* a frame that overtakes is one of the scenario for which there is room */
    which = current;
    if (to >= 0) {
        take(to);
        app_switched(which, to);
        which = to;
    }
    if (running >> which & 1u)
        return APP_BUSY;
    done[which] = 0;
    depth++;
    running |= 1u << which;
    status = compute(which, in_input, out_gemm1);
    running &= ~(1u << which);
    depth--;
    return status ? APP_WRONG : which;
}
