/* RAM 668 B, weights 672 B, 29664 MACs */
/* tiled: the schedule. Which layer runs when, where its tensors lie. */
#include "tiled.h"
#include "tiled_kernels.h"
#include "tiled_weights.h"

static const tiled_dsp_convolution tiled_t0 = {{tiled_c0, tiled_c1, 8, 24, 13, 18, 4, 127, 0, 4}, tiled_dsp_general, {24, 2, 0}, {56, 8, 0}, 12, 12, 2, 3, 1, 3, 1, 1, 1, 1, 1, 1, -3, 0, 0};
static const tiled_dsp_convolution tiled_t2 = {{tiled_c2, tiled_c3, 4, 72, 11, 15, -128, 127, 0, 4}, tiled_dsp_general, {56, 8, 0}, {20, 4, 0}, 12, 12, 8, 3, 1, 3, 2, 2, 1, 1, 0, 0, 4, 0, 0};
static const int16_t tiled_t14[6] = {288, 240, 64, 16, -160, -208};
static const tiled_part tiled_t15[6] = {
    {0, 5, 0, 7},
    {0, 5, 6, 11},
    {4, 9, 0, 7},
    {4, 9, 6, 11},
    {8, 11, 0, 7},
    {8, 11, 6, 11},
};
static const tiled_part tiled_t16[6] = {
    {0, 2, 0, 3},
    {0, 2, 3, 5},
    {2, 4, 0, 3},
    {2, 4, 3, 5},
    {4, 5, 0, 3},
    {4, 5, 3, 5},
};

void tiled_run_in(uint8_t *arena_ram, const int8_t *in_image, int8_t *out_second) {
    if (in_image && in_image != ((int8_t *)(void *)(arena_ram))) {
        memcpy(((int8_t *)(void *)(arena_ram)), in_image, 288);
    }
    TILED_FENCE();
    TILED_PROBE(0);
    /* 0: first .. second */
    for (int32_t tile = 0; tile < 6; tile++) {
        {
            uint32_t columns[24];
            tiled_dsp_conv(&tiled_t0, ((int8_t *)(void *)(arena_ram)), ((int8_t *)(void *)(arena_ram + tiled_t14[tile])), &tiled_t15[tile], columns);
        }
        {
            uint32_t columns[72];
            tiled_dsp_conv(&tiled_t2, ((int8_t *)(void *)(arena_ram + tiled_t14[tile])), ((int8_t *)(void *)(arena_ram + 568)), &tiled_t16[tile], columns);
        }
    }
    TILED_FENCE();
    TILED_PROBE(1);
    if (out_second && out_second != ((int8_t *)(void *)(arena_ram + 568))) {
        memcpy(out_second, ((int8_t *)(void *)(arena_ram + 568)), 100);
    }
}

#ifndef TILED_CALLER_PLACES_ARENA
TILED_SECTION(ram) TILED_ALIGNED(16) static uint8_t tiled_arena_ram[TILED_ARENA_SIZE];

void tiled_run(const int8_t *in_image, int8_t *out_second) {
    tiled_run_in(tiled_arena_ram, in_image, out_second);
}

int8_t *tiled_input_image(void) {
    return (int8_t *)(void *)(tiled_arena_ram + 0);
}

int8_t *tiled_output_second(void) {
    return (int8_t *)(void *)(tiled_arena_ram + 568);
}
#endif
