/* Reads the inputs, runs the library between two stamps and over a painted stack, writes the record. */
#include "board.h"

#define PAINT 0xA5C3965Au

extern uint32_t __stack_bottom[], __stack_top[], __second_stack_bottom[], __second_stack_top[];

BOARD_MEMORY static intptr_t file, traced;
BOARD_MEMORY uintptr_t board_stack_top;

static intptr_t open_file(const char *name, uintptr_t mode, uintptr_t length)
{
    uintptr_t arguments[3];
    arguments[0] = (uintptr_t)name;
    arguments[1] = mode; /* 1: "rb", 5: "wb" */
    arguments[2] = length;
    return board_call(SYS_OPEN, arguments);
}

static intptr_t transfer(int32_t operation, uintptr_t buffer, uintptr_t bytes)
{
    uintptr_t arguments[3];
    arguments[0] = (uintptr_t)file;
    arguments[1] = buffer;
    arguments[2] = bytes;
    return board_call(operation, arguments);
}

int32_t board_read(void *to, uint32_t bytes)
{
    return bytes ? (int32_t)transfer(SYS_READ, (uintptr_t)to, bytes) : 0;
}

void board_write(const void *from, uint32_t bytes)
{
    if (bytes)
        (void)transfer(SYS_WRITE, (uintptr_t)from, bytes);
}

void board_trace(const void *from, uint32_t bytes)
{
    if (!traced)
        traced = open_file("trace.bin", 5, 9);
    file = traced; /* between the inputs and the record no other is open */
    board_write(from, bytes);
}

static void finish(void)
{
    uintptr_t arguments[2];
    (void)transfer(SYS_CLOSE, 0, 0);
    arguments[0] = 0x20026; /* ADP_Stopped_ApplicationExit */
    arguments[1] = 0;
    for (;;)
        (void)board_call(SYS_EXIT_EXTENDED, arguments);
}

static void begin_record(uint32_t status)
{
    uint32_t head[2];
    head[0] = BOARD_MAGIC;
    head[1] = status;
    file = open_file("record.bin", 5, 10);
    board_write(head, sizeof head);
}

void board_fault(uint32_t pc, uint32_t cause, uint32_t address)
{
    uint32_t body[3];
    body[0] = pc;
    body[1] = cause;
    body[2] = address;
    begin_record(BOARD_FAULT);
    board_write(body, sizeof body);
    finish();
}

/* Both stand where they are called: a frame of their own would lie in what they paint. */
static inline __attribute__((always_inline)) void paint(uint32_t *bottom, const uint32_t *end)
{
    for (; bottom < end; bottom++)
        *(volatile uint32_t *)bottom = PAINT;
}

/* Bytes below `top` that are no longer as they were painted. */
static inline __attribute__((always_inline)) uint32_t used_below(uintptr_t top, const uint32_t *bottom, const uint32_t *end)
{
    while (bottom < end && *(const volatile uint32_t *)bottom == PAINT)
        bottom++;
    return top > (uintptr_t)bottom ? (uint32_t)(top - (uintptr_t)bottom) : 0;
}

/* Never inlined, so that what lies below its frame is the run's. Of two cores, the stack of the one that takes more. */
static __attribute__((noinline)) void painted_run(board_stamp *stamps, uint32_t *used)
{
    uint32_t *const start = (uint32_t *)board_stack();
    paint(__stack_bottom, start);
#if BOARD_CORES > 1
    paint(__second_stack_bottom, __second_stack_top);
    board_cores_start();
#endif
    stamps[0] = board_now();
    stamps[1] = board_now(); /* what a stamp costs by itself */
    board_run();
    stamps[2] = board_now();
    *used = used_below(board_stack_top, __stack_bottom, start);
#if BOARD_CORES > 1
    {
        const uint32_t second = used_below(board_second_stack_top, __second_stack_bottom, __second_stack_top);
        *used = second > *used ? second : *used;
    }
#endif
}

void board_main(void)
{
    board_stamp stamps[3];
    uint32_t numbers[2];
    int32_t missing;
    traced = 0;
    file = open_file("input.bin", 1, 9);
    missing = file < 0 ? 1 : board_inputs();
    if (file >= 0)
        (void)transfer(SYS_CLOSE, 0, 0);
    if (missing) {
        begin_record(BOARD_NO_INPUT);
        finish();
    }
    painted_run(stamps, &numbers[0]);
    numbers[1] = board_probe_count;
#if BOARD_CORES > 1
    numbers[1] += board_turn_stamps;
#endif
    begin_record(BOARD_OK);
    board_write(stamps, sizeof stamps);
    board_write(numbers, sizeof numbers);
    board_write(board_probes, numbers[1] * (uint32_t)sizeof(board_stamp));
    board_outputs();
    finish();
}
