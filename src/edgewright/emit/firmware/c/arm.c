/* Start-up for Cortex-M: vectors, floating point, a stack of its own for the run, faults. */
#include "board.h"

#define REGISTER(address) (*(volatile uint32_t *)(uintptr_t)(address))
#define SYST_CSR REGISTER(0xE000E010)
#define SYST_RVR REGISTER(0xE000E014)
#define SYST_CVR REGISTER(0xE000E018)
#define CCR REGISTER(0xE000ED14)
#define CFSR REGISTER(0xE000ED28)
#define MMFAR REGISTER(0xE000ED34)
#define BFAR REGISTER(0xE000ED38)
#define MPU_CTRL REGISTER(0xE000ED94)
#define MPU_RNR REGISTER(0xE000ED98)
#define MPU_RBAR REGISTER(0xE000ED9C)
#define MPU_RASR REGISTER(0xE000EDA0)
#define CPACR REGISTER(0xE000ED88)
#define FPGAIO_SECONDS REGISTER(BOARD_FPGAIO + 0x10)
#define FPGAIO_COUNTER REGISTER(BOARD_FPGAIO + 0x18)

extern uint32_t __stack_bottom[], __stack_top[], __harness_stack_top[];
void board_reset(void);
void board_start(void);
void board_explain(const uint32_t *frame);
__attribute__((weak)) void board_tick(void);

typedef void (*vector)(void);
__attribute__((section(".vectors"), used)) static const vector vectors[16] = {
    (vector)(uintptr_t)__harness_stack_top,
    board_reset,
    board_trap, board_trap, board_trap, board_trap, board_trap, board_trap,
    board_trap, board_trap, board_trap, board_trap, board_trap, board_trap, board_trap, board_tick,
};

/* The run has the process stack, so that a fault by overflow finds the main stack intact. */
__attribute__((naked, used)) void board_reset(void)
{
    __asm__ volatile(
#if __ARM_ARCH >= 8 || BOARD_CORES > 1
        "ldr r0, =__stack_bottom\n"
        ".inst.w 0xf380880b\n" /* msr psplim, r0: also where the code is for a smaller core than runs it */
#endif
        "ldr r0, =__stack_top\n"
        "msr psp, r0\n"
        "movs r0, #2\n"
        "msr control, r0\n"
        "isb\n"
        "bl board_start\n"
        ".ltorg\n");
}

__attribute__((naked, used)) void board_trap(void)
{
    __asm__ volatile("mrs r0, psp\n"
                     "bl board_explain\n");
}

void board_set_up(void)
{
    CPACR |= 0xFu << 20;
#if BOARD_TRAP_UNALIGNED
    CCR |= 1u << 3;
#endif
    __asm__ volatile("dsb\nisb" ::: "memory");
}

__attribute__((used)) void board_start(void)
{
    board_set_up();
#if __ARM_ARCH < 8 && BOARD_CORES == 1
    /* No access to the guard below the stack; the rest as it is without protection. */
    MPU_RNR = 0;
    MPU_RBAR = (uint32_t)(uintptr_t)__stack_bottom - BOARD_GUARD;
    MPU_RASR = (1u << 28) | ((uint32_t)(30 - __builtin_clz(BOARD_GUARD)) << 1) | 1u;
    MPU_CTRL = 5;
    __asm__ volatile("dsb\nisb" ::: "memory");
#endif
    board_main();
}

__attribute__((used)) void board_explain(const uint32_t *frame)
{
    const uint32_t cause = CFSR;
    /* Where even the frame could not be stacked, there is none to read. */
    const uint32_t unstacked = (1u << 4) | (1u << 12) | (1u << 20);
    const uint32_t pc = cause & unstacked ? 0 : frame[6];
    board_fault(pc, cause, cause & (1u << 15) ? BFAR : cause & (1u << 7) ? MMFAR : 0);
}

void board_tick(void) { board_trap(); }

void board_tick_every(uint32_t cycles)
{
    SYST_CSR = 0;
    SYST_RVR = cycles & 0xFFFFFFu;
    SYST_CVR = 0;
    SYST_CSR = cycles ? 7u : 0;
}

intptr_t board_call(int32_t operation, const void *argument)
{
    register intptr_t r0 __asm__("r0") = operation;
    register const void *r1 __asm__("r1") = argument;
    __asm__ volatile("bkpt 0xAB" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}

__attribute__((naked)) uintptr_t board_stack(void)
{
    __asm__ volatile("mov r0, sp\n"
                     "bx lr\n");
}

board_stamp board_now(void)
{
    board_stamp now;
    now.high = FPGAIO_SECONDS;
    now.low = FPGAIO_COUNTER;
    return now;
}
