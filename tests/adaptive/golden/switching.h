/* app: scenarios that switch at run time, in one arena, compiled by edgewright.
 *
 * app_step computes a frame with the current scenario. app_request asks for another one, from anywhere.
 * Policy "overtake": at a switch point where the frame under way keeps its memory, app_overtake is called and may
 * compute frames with the new scenario; the frame under way ends afterwards. */
#ifndef APP_H
#define APP_H

#include <stdint.h>
#include "eco.h"
#include "full.h"

#ifdef __cplusplus
extern "C" {
#endif

#define APP_ARENA_SIZE 3312

/* The scenarios. */
#define APP_ECO 0
#define APP_FULL 1
#define APP_SCENARIOS 2

/* What app_step returns instead of a scenario. */
#define APP_BUSY (-1)  /* a frame is being computed */
#define APP_WRONG (-2) /* an array or a function that the frame needs is NULL */

/* The library guards the few instructions that read and write who runs from interrupts, threads and other cores. For
 * that, define when compiling it:
 *
 *   Zephyr, ESP-IDF         nothing to define
 *   FreeRTOS                APP_FREERTOS; where interrupts start networks, on other cores than Cortex-M, also
 *                           APP_IN_ISR(): whether an interrupt is being served
 *   Linux, macOS            nothing to define: a mutex where threads or signals may meet
 *   bare Cortex-M, RISC-V   nothing for one core, whose interrupts are turned off; APP_TWO_CORES where two cores start
 *                           networks, and APP_SPINLOCK, the address of a hardware spinlock, where they have no atomics
 *                           (RP2040: 0xd000017c)
 *   anything else           APP_LOCK() and APP_UNLOCK(), which stand in one block; or APP_ONE_THREAD where one thread
 *                           calls everything and no interrupt does */

/* To place the arena of a memory, define this when compiling the library, for example as
 * __attribute__((section("." #memory))). */
#ifndef APP_SECTION
#define APP_SECTION(memory)
#endif

/* Computes one frame; returns the scenario that computed it, or a negative number.
 *   input input: float32, NHWC 1x8x8x2.
 *   output gemm1: float32, 1x3.
 */
int32_t app_step(const float *input, float *gemm1);

/* Asks for a scenario: from interrupts, threads and other cores, at any time. The last request wins; a number that is no
 * scenario is ignored. */
void app_request(int32_t scenario);

/* The scenario that is in use. */
int32_t app_current(void);

/* Yours to define: it is called when a scenario takes over from another. One that does nothing is there already. */
void app_switched(int32_t from, int32_t to);

/* Yours to define: it is called while a frame is under way that a new scenario may overtake, and may call
 * app_step with the frames that come first. One that does nothing is there already. */
void app_overtake(void);

/* Yours to define: it is called at every switch point, to feed a watchdog for example, and may call
 * app_request. One that does nothing is there already. */
void app_poll(void);

/* The signals that rules read. */
#define APP_SIGNAL_BATTERY 0

/* The new value of a signal. Rules that it makes active replace an earlier request. */
void app_signal(int32_t signal, float value);

/* Withdraws the request: the rules decide again. */
void app_release(void);

/* The time in milliseconds, which may wrap around: a scenario stays for 1000 ms at least. Tell it before each
 * frame, or from a timer. */
void app_time(uint32_t milliseconds);

#ifdef __cplusplus
}
#endif

#endif /* APP_H */
