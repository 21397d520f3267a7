/* RAM 668 B, weights 672 B, 29664 MACs */
/* tiled: the schedule. Which layer runs when, where its tensors lie. */
#include "tiled.h"
#include "tiled_kernels.h"
#include "tiled_weights.h"

static const tiled_dsp_convolution tiled_t0 = {{tiled_c0, tiled_c1, 8, 24, 13, 18, 4, 127, 0, 4}, tiled_dsp_general, {24, 2, 0}, {56, 8, 0}, 12, 12, 2, 3, 1, 3, 1, 1, 1, 1, 1, 1, -3, 0, 0};
static const tiled_dsp_convolution tiled_t1 = {{tiled_c2, tiled_c3, 4, 72, 11, 15, -128, 127, 0, 4}, tiled_dsp_general, {56, 8, 0}, {20, 4, 0}, 12, 12, 8, 3, 1, 3, 2, 2, 1, 1, 0, 0, 4, 0, 0};

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
                    const tiled_part part = {tile * 4, at0, tile1 * 6, tile1 * 4 + 7};
                    uint32_t columns[24];
                    tiled_dsp_conv(&tiled_t0, ((int8_t *)(void *)(arena_ram)), ((int8_t *)(void *)(arena_ram + (tile * -224 + tile1 * -48 + 288))), &part, columns);
                }
            }
            {
                const int32_t at0 = tiled_min(tile * 2 + 2, 5);
                {
                    const tiled_part part = {tile * 2, at0, tile1 * 3, tile1 * 2 + 3};
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
