/* RAM 624 B, weights 960 B, 14640 MACs */
/* streamed: the schedule. Which layer runs when, where its tensors lie. */
#include "streamed.h"
#include "streamed_kernels.h"
#include "streamed_weights.h"

static const streamed_dsp_convolution streamed_t0 = {.sums = {.weights = streamed_c0, .channels = streamed_c1, .count = 8,
    .taps = 36, .left = 12, .shift = 17, .low = 4, .high = 127, .flip = 0, .numbers = 4}, .pairs = streamed_dsp_general,
    .x = {.row = 40, .pixel = 4, .rows = 0}, .y = {.row = 40, .pixel = 8, .rows = 3}, .height = 12, .width = 10,
    .depth = 4, .rows = 3, .runs = 1, .pixels = 3, .row_stride = 2, .stride = 2, .row_step = 1, .step = 1, .top = 0,
    .left = 0, .zero = -3, .flip = 0, .is_backward = 0};
static const streamed_rows streamed_t1 = {.x = {.row = 40, .pixel = 8, .rows = 3}, .y = {.row = 24, .pixel = 8, .rows = 1},
    .channels = streamed_c2, .line = streamed_rows_full, .height = 6, .width = 5, .stride = 1, .pad_h = 1, .pad_w = 1,
    .zero = 4, .low = 4, .high = 127, .flip = 0, .shift = 17, .own_shifts = 0};
static const streamed_dsp_convolution streamed_t2 = {.sums = {.weights = streamed_c3, .channels = streamed_c4, .count = 16,
    .taps = 8, .left = 14, .shift = 18, .low = -128, .high = 127, .flip = 0, .numbers = 4}, .pairs = streamed_dsp_general,
    .x = {.row = 24, .pixel = 8, .rows = 1}, .y = {.row = 80, .pixel = 16, .rows = 0}, .height = 6, .width = 5,
    .depth = 8, .rows = 1, .runs = 1, .pixels = 1, .row_stride = 1, .stride = 1, .row_step = 1, .step = 1, .top = 0,
    .left = 0, .zero = 4, .flip = 0, .is_backward = 0};

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
                            const streamed_part part = {.top = row, .bottom = row + 1, .left = 0, .right = 5};
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
                                const streamed_part part = {.top = row, .bottom = row + 1, .left = chunk * 3, .right = chunk * 2 + 3};
                                streamed_rows_run(&streamed_t1, (const int8_t *)((int8_t *)(void *)(arena_ram + 480)), (uint8_t *)((int8_t *)(void *)(arena_ram + (chunk * -24 + 600))), &part, 0, 8);
                            }
                            {
                                const streamed_part part = {.top = row, .bottom = row + 1, .left = chunk * 3, .right = chunk * 2 + 3};
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
