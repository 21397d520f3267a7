/* RAM 1024 B, weights 704 B, 22568 MACs */
/* whole: the schedule. Which layer runs when, where its tensors lie. */
#include "whole.h"
#include "whole_kernels.h"
#include "whole_weights.h"

static const whole_dsp_convolution whole_t0 = {{whole_c0, whole_c1, 8, 36, 12, 17, 4, 127, 0, 4}, whole_dsp_general, {32, 4, 0}, {64, 8, 0}, 8, 8, 4, 3, 1, 3, 1, 1, 1, 1, 1, 1, -3, 0, 0};
static const whole_part whole_t1 = {0, 8, 0, 8};
static const whole_dsp_convolution whole_t2 = {{whole_c2, whole_c3, 8, 8, 14, 18, -128, 127, 0, 4}, whole_dsp_general, {64, 8, 0}, {64, 8, 0}, 8, 8, 8, 1, 1, 1, 1, 1, 1, 1, 0, 0, 4, 0, 0};
static const whole_add whole_t3 = {2097152, 8388608, {1073741824, 0, 0, 0}, {1073741824, 18, 1179648, -1}, -128, 127};
static const whole_pool whole_t4 = {{64, 8, 0}, {8, 8, 0}, 8, 8, 8, 8, 1, 1, 0, 0, -128, 127, 0, 0, 0, 0};
static const whole_part whole_t5 = {0, 1, 0, 1};
static const whole_dsp_convolution whole_t6 = {{whole_c4, whole_c5, 5, 8, 14, 18, -128, 127, 0, 2}, whole_dsp_odd_plain, {0, 0, 0}, {0, 0, 0}, 1, 1, 8, 1, 1, 1, 1, 1, 1, 1, 0, 0, 4, 0, 0};

void whole_run_in(uint8_t *arena_ram, const int8_t *in_image, int8_t *out_scores) {
    if (in_image && in_image != ((int8_t *)(void *)(arena_ram + 512))) {
        memcpy(((int8_t *)(void *)(arena_ram + 512)), in_image, 256);
    }
    WHOLE_FENCE();
    WHOLE_PROBE(0);
    /* 0: Conv2d 1x8x8x4 -> 1x8x8x8 (conv) */
    {
        whole_dsp_conv(&whole_t0, ((int8_t *)(void *)(arena_ram + 512)), ((int8_t *)(void *)(arena_ram)), &whole_t1, (uint32_t *)(void *)(arena_ram + 768));
    }
    WHOLE_FENCE();
    WHOLE_PROBE(1);
    /* 1: Conv2d 1x8x8x8 -> 1x8x8x8 (pointwise) */
    {
        uint32_t columns[8];
        whole_dsp_conv(&whole_t2, ((int8_t *)(void *)(arena_ram)), ((int8_t *)(void *)(arena_ram + 512)), &whole_t1, columns);
    }
    WHOLE_FENCE();
    WHOLE_PROBE(2);
    /* 2: Binary 1x8x8x8, 1x8x8x8 -> 1x8x8x8 (add) */
    whole_add_int8(&whole_t3, ((int8_t *)(void *)(arena_ram)), ((int8_t *)(void *)(arena_ram + 512)), ((int8_t *)(void *)(arena_ram)), 512, 0);
    WHOLE_FENCE();
    WHOLE_PROBE(3);
    /* 3: AvgPool2d 1x8x8x8 -> 1x1x1x8 (pool) */
    {
        whole_pool_average(&whole_t4, ((int8_t *)(void *)(arena_ram)), ((int8_t *)(void *)(arena_ram + 512)), &whole_t5, 0, 8, 0);
    }
    WHOLE_FENCE();
    WHOLE_PROBE(4);
    /* 4: Dense 1x8 -> 1x5 (scores) */
    {
        whole_dsp_conv(&whole_t6, ((int8_t *)(void *)(arena_ram + 512)), ((int8_t *)(void *)(arena_ram)), &whole_t5, (uint32_t *)(void *)(arena_ram + 8));
    }
    WHOLE_FENCE();
    WHOLE_PROBE(5);
    if (out_scores && out_scores != ((int8_t *)(void *)(arena_ram))) {
        memcpy(out_scores, ((int8_t *)(void *)(arena_ram)), 5);
    }
}

#ifndef WHOLE_CALLER_PLACES_ARENA
WHOLE_SECTION(ram) WHOLE_ALIGNED(16) static uint8_t whole_arena_ram[WHOLE_ARENA_SIZE];

void whole_run(const int8_t *in_image, int8_t *out_scores) {
    whole_run_in(whole_arena_ram, in_image, out_scores);
}

int8_t *whole_input_image(void) {
    return (int8_t *)(void *)(whole_arena_ram + 512);
}

int8_t *whole_output_scores(void) {
    return (int8_t *)(void *)(whole_arena_ram + 0);
}
#endif
