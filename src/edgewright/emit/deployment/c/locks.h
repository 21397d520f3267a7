/* The library guards the few instructions that read and write who runs from interrupts, threads and other cores. For
 * that, define when compiling it:
 *
 *   Zephyr, ESP-IDF         nothing to define
 *   FreeRTOS                EW_FREERTOS; where interrupts start networks, on other cores than Cortex-M, also
 *                           EW_IN_ISR(): whether an interrupt is being served
 *   Linux, macOS            nothing to define: a mutex where threads or signals may meet
 *   bare Cortex-M, RISC-V   nothing for one core, whose interrupts are turned off; EW_TWO_CORES where two cores start
 *                           networks, and EW_SPINLOCK, the address of a hardware spinlock, where they have no atomics
 *                           (RP2040: 0xd000017c)
 *   anything else           EW_LOCK() and EW_UNLOCK(), which stand in one block; or EW_ONE_THREAD where one thread
 *                           calls everything and no interrupt does */
#if defined(EW_LOCK)
#elif defined(EW_ONE_THREAD)
#define EW_LOCK()
#define EW_UNLOCK()
#elif defined(__ZEPHYR__)
#include <zephyr/kernel.h>
#if defined(CONFIG_SMP) /* irq_lock would keep out this core's threads alone */
static struct k_spinlock guard;
#define EW_LOCK() const k_spinlock_key_t key = k_spin_lock(&guard)
#define EW_UNLOCK() k_spin_unlock(&guard, key)
#else
#define EW_LOCK() const unsigned int key = irq_lock()
#define EW_UNLOCK() irq_unlock(key)
#endif
#elif defined(ESP_PLATFORM)
#include <freertos/FreeRTOS.h>
#include <freertos/task.h>
static portMUX_TYPE guard = portMUX_INITIALIZER_UNLOCKED;
#define EW_LOCK() portENTER_CRITICAL_SAFE(&guard)
#define EW_UNLOCK() portEXIT_CRITICAL_SAFE(&guard)
#elif defined(EW_FREERTOS)
#include <FreeRTOS.h>
#include <task.h>
#ifndef EW_IN_ISR
#if defined(__GNUC__) && defined(__ARM_ARCH_PROFILE) && __ARM_ARCH_PROFILE == 'M'
static inline uint32_t exception(void)
{
    uint32_t number;
    __asm__ volatile("mrs %0, ipsr" : "=r"(number));
    return number;
}
#define EW_IN_ISR() (exception() != 0u)
#else
#define EW_IN_ISR() 0
#endif
#endif
static inline UBaseType_t locked(void)
{
    if (EW_IN_ISR())
        return taskENTER_CRITICAL_FROM_ISR();
    taskENTER_CRITICAL();
    return 0;
}
static inline void unlocked(UBaseType_t key)
{
    if (EW_IN_ISR()) {
        taskEXIT_CRITICAL_FROM_ISR(key);
    } else {
        taskEXIT_CRITICAL();
    }
    (void)key;
}
#define EW_LOCK() const UBaseType_t key = locked()
#define EW_UNLOCK() unlocked(key)
#elif EW_IS_SHARED && (defined(__linux__) || defined(__APPLE__) || defined(__unix__))
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
#define EW_LOCK() const sigset_t key = locked()
#define EW_UNLOCK() unlocked(&key)
#else
#define EW_LOCK() pthread_mutex_lock(&guard)
#define EW_UNLOCK() pthread_mutex_unlock(&guard)
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
#if !defined(EW_TWO_CORES)
#define EW_LOCK() const unsigned long key = masked()
#define EW_UNLOCK() unmasked(key)
#else
#if defined(EW_SPINLOCK) /* reads as zero while the other core has it; any write gives it back */
#define EW_TAKEN() (*(volatile uint32_t *)(EW_SPINLOCK) == 0u)
#define EW_GIVE() (*(volatile uint32_t *)(EW_SPINLOCK) = 1u)
#elif defined(__GCC_HAVE_SYNC_COMPARE_AND_SWAP_4) || defined(__riscv_atomic)
static uint32_t guard;
#define EW_TAKEN() (__atomic_exchange_n(&guard, 1u, __ATOMIC_SEQ_CST) != 0u)
#define EW_GIVE() __atomic_store_n(&guard, 0u, __ATOMIC_SEQ_CST)
#else
#error "this core has no atomics: define EW_SPINLOCK as the address of a hardware spinlock (RP2040: 0xd000017c)"
#endif
static inline unsigned long locked(void)
{
    const unsigned long key = masked();
    while (EW_TAKEN()) {
    }
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    return key;
}
static inline void unlocked(unsigned long key)
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    EW_GIVE();
    unmasked(key);
}
#define EW_LOCK() const unsigned long key = locked()
#define EW_UNLOCK() unlocked(key)
#endif
#elif EW_IS_SHARED
#error "no lock is known for this system: define EW_LOCK() and EW_UNLOCK(), or EW_FREERTOS, or EW_ONE_THREAD"
#else
#define EW_LOCK()
#define EW_UNLOCK()
#endif
