/* What the parts of the test firmware tell each other. It is linked around an emitted library, runs it once, and writes
 * what happened into a file through semihosting. */
#ifndef BOARD_H
#define BOARD_H

#include <stdint.h>

/* The harness keeps out of .data and .bss, which are the library's alone. */
#ifdef BOARD_HOSTED
#define BOARD_MEMORY
#else
#define BOARD_MEMORY __attribute__((section(".bss.harness"), aligned(16)))
#endif

/* A moment: on Arm the board's seconds and its fast counter, on RISC-V the two halves of the retired instructions.
 * The reader of the record knows what they mean. */
typedef struct {
    uint32_t high, low;
} board_stamp;

enum { SYS_OPEN = 0x01, SYS_CLOSE = 0x02, SYS_WRITE = 0x05, SYS_READ = 0x06, SYS_EXIT_EXTENDED = 0x20 };
enum { BOARD_MAGIC = 0x52425745, BOARD_OK = 0, BOARD_FAULT = 1, BOARD_NO_INPUT = 2 };

/* By the start-up code of the architecture. */
intptr_t board_call(int32_t operation, const void *argument); /* semihosting */
board_stamp board_now(void);

uintptr_t board_stack(void); /* the caller's stack pointer */
void board_set_up(void); /* what each core needs before it computes */
void board_trap(void);

/* By cores.c, where there are two: before the first run, and what a library for two lanes asks for. */
typedef void (*board_work)(void *context, int32_t lane, int32_t lanes);
extern uintptr_t board_second_stack_top; /* where the second core's stack begins */
extern uint32_t board_turn_stamps; /* that lie behind the probes */
void board_cores_start(void);
void board_lanes_run(board_work work, void *context);
void board_lanes_meet(int32_t lane, int32_t lanes);

/* Around what no interrupt may cut in two. */
#if !defined(BOARD_HOSTED) && defined(__ARM_ARCH_PROFILE)
#define BOARD_MASK() __asm__ volatile("cpsid i" ::: "memory")
#define BOARD_UNMASK() __asm__ volatile("cpsie i" ::: "memory")
void board_tick_every(uint32_t cycles); /* from now on the timer calls board_tick; 0 stops it */
#else
#define BOARD_MASK() ((void)0)
#define BOARD_UNMASK() ((void)0)
#endif

/* By the file written for the library. */
int32_t board_inputs(void); /* 0 when all could be read */
void board_run(void);
void board_outputs(void);
void board_tick(void); /* where the timer is used */
extern board_stamp board_probes[];
extern const uint32_t board_probe_count;

/* By main.c. */
extern uintptr_t board_stack_top; /* where the library's own stack begins */
int32_t board_read(void *to, uint32_t bytes); /* 0 when all bytes were there */
void board_write(const void *from, uint32_t bytes);
void board_trace(const void *from, uint32_t bytes); /* to the end of a file of its own */
void board_main(void);
void board_fault(uint32_t pc, uint32_t cause, uint32_t address);

#endif
