/* RAM 668 B, weights 672 B, 29664 MACs */
/* tiled: the schedule. Which layer runs when, where its tensors lie. */
#include "tiled.h"
#include "tiled_kernels.h"
#include "tiled_weights.h"

static const tiled_dsp_convolution tiled_t0 = {.sums = {.weights = tiled_c0, .channels = tiled_c1, .count = 8, .taps = 24,
    .left = 13, .shift = 18, .low = 4, .high = 127, .flip = 0, .numbers = 4}, .pairs = tiled_dsp_general, .x = {.row = 24,
    .pixel = 2, .rows = 0}, .y = {.row = 56, .pixel = 8, .rows = 0}, .height = 12, .width = 12, .depth = 2, .rows = 3,
    .runs = 1, .pixels = 3, .row_stride = 1, .stride = 1, .row_step = 1, .step = 1, .top = 1, .left = 1, .zero = -3,
    .flip = 0, .is_backward = 0};
static const tiled_dsp_convolution tiled_t1 = {.sums = {.weights = tiled_c2, .channels = tiled_c3, .count = 4, .taps = 72,
    .left = 11, .shift = 15, .low = -128, .high = 127, .flip = 0, .numbers = 4}, .pairs = tiled_dsp_general,
    .x = {.row = 56, .pixel = 8, .rows = 0}, .y = {.row = 20, .pixel = 4, .rows = 0}, .height = 12, .width = 12,
    .depth = 8, .rows = 3, .runs = 1, .pixels = 3, .row_stride = 2, .stride = 2, .row_step = 1, .step = 1, .top = 0,
    .left = 0, .zero = 4, .flip = 0, .is_backward = 0};

void tiled_run_in(uint8_t *arena_ram, const int8_t *in_image, int8_t *out_second) {
    if (in_image && in_image != ((int8_t *)(void *)(arena_ram))) {
        memcpy(((int8_t *)(void *)(arena_ram)), in_image, 288);
    }
    TILED_FENCE();
    TILED_PROBE(0);
    /* 0: first .. second */
    for (int32_t tile = 0; tile < 3; tile++) {
        for (int32_t tile1 = 0; tile1 < 2; tile1++) {
            {
                const int32_t at0 = tiled_min(tile * 4 + 5, 11);
                {
                    const tiled_part part = {.top = tile * 4, .bottom = at0, .left = tile1 * 6, .right = tile1 * 4 + 7};
                    uint32_t columns[24];
                    tiled_dsp_conv(&tiled_t0, ((int8_t *)(void *)(arena_ram)), ((int8_t *)(void *)(arena_ram + (tile * -224 + tile1 * -48 + 288))), &part, columns);
                }
            }
            {
                const int32_t at0 = tiled_min(tile * 2 + 2, 5);
                {
                    const tiled_part part = {.top = tile * 2, .bottom = at0, .left = tile1 * 3, .right = tile1 * 2 + 3};
                    uint32_t columns[72];
                    tiled_dsp_conv(&tiled_t1, ((int8_t *)(void *)(arena_ram + (tile * -224 + tile1 * -48 + 288))), ((int8_t *)(void *)(arena_ram + 568)), &part, columns);
                }
            }
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
