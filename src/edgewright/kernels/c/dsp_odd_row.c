#include "dsp_odd_row.h"

/* Runs of three pixels. */
static void ew_dsp_three_runs(const uint8_t *x, int32_t step, int32_t length, uint32_t minus, uint32_t flip, uint32_t *to)
{
    const int32_t rest = length & 3;
    const uint8_t *const end = x + (length - rest);
    for (; x != end; x += 4, to += 6) {
        const uint32_t a = ew_dsp_load(x) ^ flip, b = ew_dsp_load(x + step) ^ flip, c = ew_dsp_load(x + 2 * step) ^ flip;
        to[0] = ew_dsp_even(minus, a);
        to[1] = ew_dsp_even(minus, b);
        to[2] = ew_dsp_even(minus, c);
        to[3] = ew_dsp_odd(minus, a);
        to[4] = ew_dsp_odd(minus, b);
        to[5] = ew_dsp_odd(minus, c);
    }
    for (int32_t i = 0; rest && i < 3; i++, x += step, to++) {
        const uint32_t word = ew_dsp_rest(x, rest, length) ^ flip;
        to[0] = ew_dsp_even(minus, word);
        to[3] = ew_dsp_odd(minus, word);
    }
}

void ew_dsp_odd_row(const ew_dsp_convolution *layer, ew_dsp_threes *threes, const void *x, void *y,
                    const ew_part *part, void *columns)
{
    ew_part most = *part;
    const int32_t count = part->right - part->left, last = (count & 1) && count > 1 ? 3 : 0;
    int32_t first = part->left; /* of the last three */
    if (layer->is_backward) {
        most.left += last;
    } else {
        most.right -= last;
        first = most.right;
    }
    ew_dsp_row(layer, x, y, &most, columns);
    if (last) {
        const uint32_t minus = ((uint32_t)-layer->zero & 0xFFFFu) * 0x10001u, flip = layer->flip * 0x01010101u;
        const int32_t step = layer->stride * layer->x.pixel, on = layer->y.pixel;
        const uint8_t *from = (const uint8_t *)x + ew_row(&layer->x, part->top * layer->row_stride) + first * step;
        uint8_t *const to = (uint8_t *)y + ew_row(&layer->y, part->top) + first * on;
        ew_dsp_work work;
        ew_dsp_open(&layer->sums, &work);
        ew_dsp_three_runs(from, step, layer->depth, minus, flip, (uint32_t *)columns);
        threes(&work, (const uint32_t *)columns, to, on);
    }
}
