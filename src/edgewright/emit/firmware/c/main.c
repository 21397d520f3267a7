/* Reads the inputs, runs the library between two stamps and over a painted stack, writes the record. */
#include "board.h"

#define PAINT 0xA5C3965Au

extern uint32_t __stack_bottom[], __stack_top[];

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

/* Never inlined, so that what lies below its frame is the run's. */
static __attribute__((noinline)) void painted_run(board_stamp *stamps, uint32_t *used)
{
    uint32_t *p;
    uint32_t *const start = (uint32_t *)board_stack();
    for (p = __stack_bottom; p < start; p++)
        *(volatile uint32_t *)p = PAINT;
    stamps[0] = board_now();
    stamps[1] = board_now(); /* what a stamp costs by itself */
    board_run();
    stamps[2] = board_now();
    for (p = __stack_bottom; p < start && *(volatile uint32_t *)p == PAINT; p++) {
    }
    *used = board_stack_top > (uintptr_t)p ? (uint32_t)(board_stack_top - (uintptr_t)p) : 0;
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
    begin_record(BOARD_OK);
    board_write(stamps, sizeof stamps);
    board_write(numbers, sizeof numbers);
    board_write(board_probes, board_probe_count * (uint32_t)sizeof(board_stamp));
    board_outputs();
    finish();
}
