/* RAM 1024 B, weights 704 B, 22568 MACs */
/* whole: the schedule. Which layer runs when, where its tensors lie. */
#include "whole.h"
#include "whole_kernels.h"
#include "whole_weights.h"

static const whole_dsp_convolution whole_t0 = {.sums = {.weights = whole_c0, .channels = whole_c1, .count = 8, .taps = 36,
    .left = 12, .shift = 17, .low = 4, .high = 127, .flip = 0, .numbers = 4}, .pairs = whole_dsp_general, .x = {.row = 32,
    .pixel = 4, .rows = 0}, .y = {.row = 64, .pixel = 8, .rows = 0}, .height = 8, .width = 8, .depth = 4, .rows = 3,
    .runs = 1, .pixels = 3, .row_stride = 1, .stride = 1, .row_step = 1, .step = 1, .top = 1, .left = 1, .zero = -3,
    .flip = 0, .is_backward = 0};
static const whole_part whole_t1 = {.top = 0, .bottom = 8, .left = 0, .right = 8};
static const whole_dsp_convolution whole_t2 = {.sums = {.weights = whole_c2, .channels = whole_c3, .count = 8, .taps = 8,
    .left = 14, .shift = 18, .low = -128, .high = 127, .flip = 0, .numbers = 4}, .pairs = whole_dsp_general,
    .x = {.row = 64, .pixel = 8, .rows = 0}, .y = {.row = 64, .pixel = 8, .rows = 0}, .height = 8, .width = 8,
    .depth = 8, .rows = 1, .runs = 1, .pixels = 1, .row_stride = 1, .stride = 1, .row_step = 1, .step = 1, .top = 0,
    .left = 0, .zero = 4, .flip = 0, .is_backward = 0};
static const whole_add whole_t3 = {.zero_a = 2097152, .zero_b = 8388608, .b = {.multiplier = 1073741824, .shift = 0,
    .half = 0, .sign = 0}, .out = {.multiplier = 1073741824, .shift = 18, .half = 1179648, .sign = -1}, .low = -128,
    .high = 127};
static const whole_pool whole_t4 = {.x = {.row = 64, .pixel = 8, .rows = 0}, .y = {.row = 8, .pixel = 8, .rows = 0},
    .height = 8, .width = 8, .kernel_h = 8, .kernel_w = 8, .stride_h = 1, .stride_w = 1, .pad_h = 0, .pad_w = 0,
    .low = -128, .high = 127, .zero = 0, .multiplier = 0, .shift = 0, .offset = 0};
static const whole_part whole_t5 = {.top = 0, .bottom = 1, .left = 0, .right = 1};
static const whole_dsp_convolution whole_t6 = {.sums = {.weights = whole_c4, .channels = whole_c5, .count = 5, .taps = 8,
    .left = 14, .shift = 18, .low = -128, .high = 127, .flip = 0, .numbers = 2}, .pairs = whole_dsp_odd_plain,
    .x = {.row = 0, .pixel = 0, .rows = 0}, .y = {.row = 0, .pixel = 0, .rows = 0}, .height = 1, .width = 1,
    .depth = 8, .rows = 1, .runs = 1, .pixels = 1, .row_stride = 1, .stride = 1, .row_step = 1, .step = 1, .top = 0,
    .left = 0, .zero = 4, .flip = 0, .is_backward = 0};

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
