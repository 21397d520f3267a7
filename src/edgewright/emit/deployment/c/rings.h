/* Rows cross in rings. Where partitions have a thread or a core each, define EW_WAIT() as what one does while it waits
 * for the other: sched_yield(), for example. Without it one thread does everything: a run that finds its ring full
 * returns, and goes on when the next partition wants rows. */
#ifndef EW_WAIT
#define EW_ALONE 1u
#define EW_ORDER()
#elif defined(__GNUC__)
#define EW_ALONE 0u
#define EW_ORDER() __atomic_thread_fence(__ATOMIC_SEQ_CST)
#else
#error "threads need a fence of memory, which is not known for this compiler"
#endif
