/* Lanes on a machine with two Cortex-M33 (SSE-200): the first core releases the second, and they tell each other by words
 * in memory, each written by one of them. Who waits sleeps until the other one signals an event. */
#include "board.h"

#define REGISTER(address) (*(volatile uint32_t *)(uintptr_t)(address))
#define INITSVTOR1 REGISTER(BOARD_SYSTEM_CONTROL + 0x114) /* where the second core finds its vectors */
#define CPUWAIT REGISTER(BOARD_SYSTEM_CONTROL + 0x118) /* a bit for each core that waits to be released */

enum { LANES = 2, FAULT_STACK = 256 };

extern uint32_t __second_stack_bottom[], __second_stack_top[];
void board_second_reset(void);
void board_second(void);

BOARD_MEMORY static volatile uint32_t met[LANES]; /* barriers that each core has reached */
BOARD_MEMORY static volatile uint32_t called, finished; /* runs */
BOARD_MEMORY static uint32_t is_there, fault_stack[FAULT_STACK];
BOARD_MEMORY uint32_t board_turn_stamps;
BOARD_MEMORY static board_work shared_work;
BOARD_MEMORY static void *shared_context;
BOARD_MEMORY uintptr_t board_second_stack_top;

typedef void (*vector)(void);
static const vector vectors[16] __attribute__((aligned(128))) = {
    (vector)(uintptr_t)(fault_stack + FAULT_STACK),
    board_second_reset,
    board_trap, board_trap, board_trap, board_trap, board_trap, board_trap,
    board_trap, board_trap, board_trap, board_trap, board_trap, board_trap, board_trap, board_trap,
};

static void tell(volatile uint32_t *counter, uint32_t number)
{
    __asm__ volatile("dmb" ::: "memory");
    *counter = number;
    __asm__ volatile("dsb\nsev" ::: "memory");
}

static void wait_for(const volatile uint32_t *counter, uint32_t number)
{
    while ((int32_t)(*counter - number) < 0)
        __asm__ volatile("wfe" ::: "memory");
    __asm__ volatile("dmb" ::: "memory");
}

/* Emulated time goes by what both cores do. To tell their shares apart they compute in turns, where stamps are wanted:
 * between two barriers first the one, then the other, with three stamps. */
static void note(void)
{
    board_probes[board_probe_count + board_turn_stamps++] = board_now();
}

static void begin_share(int32_t lane)
{
    if (board_probe_count && lane)
        wait_for(&met[0], met[1] + 1);
    else if (board_probe_count)
        note();
}

static void end_share(void)
{
    if (board_probe_count)
        note();
}

/* PSPLIM by its code: compilers for cores without it do not know its name. */
__attribute__((naked, used)) void board_second_reset(void)
{
    __asm__ volatile("ldr r0, =__second_stack_bottom\n"
                     ".inst.w 0xf380880b\n"
                     "ldr r0, =__second_stack_top\n"
                     "msr psp, r0\n"
                     "movs r0, #2\n"
                     "msr control, r0\n"
                     "isb\n"
                     "bl board_second\n"
                     ".ltorg\n");
}

__attribute__((used)) void board_second(void)
{
    board_set_up();
    board_second_stack_top = board_stack();
    for (uint32_t run = 1;; run++) {
        wait_for(&called, run);
        begin_share(1);
        shared_work(shared_context, 1, LANES);
        end_share();
        tell(&finished, run);
    }
}

/* What the emulator does not have reads as zero: then there is no second core that waits. */
void board_cores_start(void)
{
    called = finished = board_turn_stamps = 0;
    board_second_stack_top = (uintptr_t)__second_stack_top;
    is_there = CPUWAIT >> 1 & 1;
    if (!is_there)
        return;
    INITSVTOR1 = (uint32_t)(uintptr_t)vectors;
    __asm__ volatile("dsb" ::: "memory");
    CPUWAIT = 0;
}

void board_lanes_meet(int32_t lane, int32_t lanes)
{
    const uint32_t number = met[lane] + 1;
    if (lanes == 1)
        return;
    end_share();
    tell(&met[lane], number);
    wait_for(&met[1 - lane], number);
    begin_share(lane);
}

void board_lanes_run(board_work work, void *context)
{
    if (!is_there) {
        work(context, 0, 1);
        return;
    }
    met[0] = met[1] = board_turn_stamps = 0;
    shared_work = work;
    shared_context = context;
    tell(&called, called + 1);
    begin_share(0);
    work(context, 0, LANES);
    end_share();
    tell(&met[0], met[0] + 1);
    wait_for(&finished, called);
}
