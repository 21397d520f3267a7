/* The harness as a program under an operating system: input.bin in, record.bin out. */
#include "board.h"
#include <stdio.h>

static FILE *file, *traced;
uintptr_t board_stack_top;

uintptr_t board_stack(void) { return 0; }

board_stamp board_now(void)
{
    const board_stamp none = {0, 0};
    return none;
}

int32_t board_read(void *to, uint32_t bytes) { return fread(to, 1, bytes, file) == bytes ? 0 : 1; }

void board_write(const void *from, uint32_t bytes) { (void)fwrite(from, 1, bytes, file); }

void board_trace(const void *from, uint32_t bytes)
{
    if (!traced)
        traced = fopen("trace.bin", "wb");
    if (traced)
        (void)fwrite(from, 1, bytes, traced);
}

int main(void)
{
    int32_t missing;
    file = fopen("input.bin", "rb");
    if (!file)
        return 2;
    missing = board_inputs();
    (void)fclose(file);
    if (missing)
        return 2;
    board_run();
    if (traced && fclose(traced))
        return 3;
    file = fopen("record.bin", "wb");
    if (!file)
        return 3;
    board_outputs();
    return fclose(file) ? 3 : 0;
}
