/* RAM 624 B, weights 960 B, 14640 MACs */
/* streamed: the schedule. Which layer runs when, where its tensors lie. */
#include "streamed.h"
#include "streamed_kernels.h"
#include "streamed_weights.h"

static const streamed_dsp_convolution streamed_t0 = {{streamed_c0, streamed_c1, 8, 36, 12, 17, 4, 127, 0, 4}, streamed_dsp_general, {40, 4, 0}, {40, 8, 3}, 12, 10, 4, 3, 1, 3, 2, 2, 1, 1, 0, 0, -3, 0, 0};
static const streamed_rows streamed_t1 = {{40, 8, 3}, {24, 8, 1}, streamed_c2, streamed_rows_full, 6, 5, 1, 1, 1, 4, 4, 127, 0, 17, 0};
static const streamed_dsp_convolution streamed_t2 = {{streamed_c3, streamed_c4, 16, 8, 14, 18, -128, 127, 0, 4}, streamed_dsp_general, {24, 8, 1}, {80, 16, 0}, 6, 5, 8, 1, 1, 1, 1, 1, 1, 1, 0, 0, 4, 0, 0};

void streamed_run_in(uint8_t *arena_ram, const int8_t *in_image, int8_t *out_pointwise) {
    if (in_image && in_image != ((int8_t *)(void *)(arena_ram))) {
        memcpy(((int8_t *)(void *)(arena_ram)), in_image, 480);
    }
    STREAMED_FENCE();
    STREAMED_PROBE(0);
    /* 0: conv .. pointwise */
    {
        int32_t rows[2] = {0}; /* of each layer, so far */
        int32_t rounds = 0, turn = 2;
        while (rounds < 6) {
            switch (turn) {
                case 0: /* conv */ {
                    const int32_t row = rows[0];
                    {
                        {
                            const streamed_part part = {row, row + 1, 0, 5};
                            uint32_t columns[36];
                            streamed_dsp_conv(&streamed_t0, ((int8_t *)(void *)(arena_ram)), ((int8_t *)(void *)(arena_ram + 480)), &part, columns);
                        }
                    }
                    rows[0] = row + 1;
                    turn = 1;
                    break;
                }
                case 1: /* pointwise */ {
                    if (rows[0] < streamed_between(2, rows[1] + 2, 6)) {
                        turn = 0;
                        break;
                    }
                    const int32_t row = rows[1];
                    {
                        for (int32_t chunk = 0; chunk < 2; chunk++) {
                            {
                                const streamed_part part = {row, row + 1, chunk * 3, chunk * 2 + 3};
                                streamed_rows_run(&streamed_t1, (const int8_t *)((int8_t *)(void *)(arena_ram + 480)), (uint8_t *)((int8_t *)(void *)(arena_ram + (chunk * -24 + 600))), &part, 0, 8);
                            }
                            {
                                const streamed_part part = {row, row + 1, chunk * 3, chunk * 2 + 3};
                                uint32_t columns[12];
                                streamed_dsp_odd_row(&streamed_t2, streamed_dsp_threes_general, ((int8_t *)(void *)(arena_ram + (chunk * -24 + 600))), ((int8_t *)(void *)(arena_ram)), &part, columns);
                            }
                        }
                    }
                    rows[1] = row + 1;
                    turn = 2;
                    break;
                }
                default: {
                    if (rows[1] < rounds + 1) {
                        turn = 1;
                        break;
                    }
                    rounds++;
                }
            }
        }
    }
    STREAMED_FENCE();
    STREAMED_PROBE(1);
    if (out_pointwise && out_pointwise != ((int8_t *)(void *)(arena_ram))) {
        memcpy(out_pointwise, ((int8_t *)(void *)(arena_ram)), 480);
    }
}

#ifndef STREAMED_CALLER_PLACES_ARENA
STREAMED_SECTION(ram) STREAMED_ALIGNED(16) static uint8_t streamed_arena_ram[STREAMED_ARENA_SIZE];

void streamed_run(const int8_t *in_image, int8_t *out_pointwise) {
    streamed_run_in(streamed_arena_ram, in_image, out_pointwise);
}

int8_t *streamed_input_image(void) {
    return (int8_t *)(void *)(streamed_arena_ram + 0);
}

int8_t *streamed_output_pointwise(void) {
    return (int8_t *)(void *)(streamed_arena_ram + 0);
}
#endif
