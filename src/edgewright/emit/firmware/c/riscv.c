/* Start-up for RV32: stacks, traps, floating point, and no access below the stack. */
#include "board.h"

extern uint32_t __stack_bottom[], __stack_top[], __harness_stack_top[];
void board_trap(void);
void board_start(void);
void board_explain(uint32_t pc, uint32_t cause, uint32_t address);

__attribute__((naked, used, section(".vectors"))) void board_reset(void)
{
    __asm__ volatile(".option push\n"
                     ".option norelax\n"
                     "la gp, __global_pointer$\n"
                     ".option pop\n"
                     "la t0, board_trap\n"
                     "csrw mtvec, t0\n"
                     "la sp, __stack_top\n"
                     "call board_start\n");
}

__attribute__((naked, used, aligned(4))) void board_trap(void)
{
    __asm__ volatile("la sp, __harness_stack_top\n"
                     "csrr a0, mepc\n"
                     "csrr a1, mcause\n"
                     "csrr a2, mtval\n"
                     "call board_explain\n");
}

__attribute__((used)) void board_start(void)
{
    /* Nothing may touch the guard below the stack: locked, so that the rule holds in machine mode too. */
    const uint32_t guard = (((uint32_t)(uintptr_t)__stack_bottom - BOARD_GUARD) >> 2) | ((BOARD_GUARD >> 3) - 1u);
    __asm__ volatile("csrw pmpaddr0, %0\n"
                     "csrw pmpcfg0, %1" ::"r"(guard), "r"(0x98));
#if defined(__riscv_flen)
    __asm__ volatile("csrs mstatus, %0\n"
                     "csrw fcsr, zero" ::"r"(1 << 13));
#endif
    board_main();
}

__attribute__((used)) void board_explain(uint32_t pc, uint32_t cause, uint32_t address)
{
    board_fault(pc, cause, address);
}

/* The three instructions are known to the emulator as a whole: uncompressed, in one page. */
__attribute__((noinline, aligned(16))) intptr_t board_call(int32_t operation, const void *argument)
{
    register intptr_t a0 __asm__("a0") = operation;
    register const void *a1 __asm__("a1") = argument;
    __asm__ volatile(".option push\n"
                     ".option norvc\n"
                     ".balign 16\n"
                     "slli x0, x0, 0x1f\n"
                     "ebreak\n"
                     "srai x0, x0, 7\n"
                     ".option pop\n"
                     : "+r"(a0)
                     : "r"(a1)
                     : "memory");
    return a0;
}

__attribute__((naked)) uintptr_t board_stack(void)
{
    __asm__ volatile("mv a0, sp\n"
                     "ret\n");
}

board_stamp board_now(void)
{
    board_stamp now;
    uint32_t again;
    do {
        __asm__ volatile("csrr %0, minstreth\n"
                         "csrr %1, minstret\n"
                         "csrr %2, minstreth"
                         : "=&r"(now.high), "=&r"(now.low), "=&r"(again));
    } while (now.high != again);
    return now;
}
