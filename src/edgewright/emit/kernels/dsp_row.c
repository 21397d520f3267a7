#include "dsp_row.h"

/* `words` times four taps of each of three pixels; gives where the columns go on. */
static uint32_t *ew_dsp_three_words(const uint8_t *x, int32_t step, uint32_t *to, int32_t words, uint32_t minus,
                                    uint32_t flip)
{
    for (; words > 0; words--, x += 4, to += 6) {
        const uint32_t a = ew_dsp_load(x) ^ flip, b = ew_dsp_load(x + step) ^ flip, c = ew_dsp_load(x + 2 * step) ^ flip;
        to[0] = ew_dsp_even(minus, a);
        to[1] = ew_dsp_even(minus, b);
        to[2] = ew_dsp_even(minus, c);
        to[3] = ew_dsp_odd(minus, a);
        to[4] = ew_dsp_odd(minus, b);
        to[5] = ew_dsp_odd(minus, c);
    }
    return to;
}

static void ew_dsp_three_runs(const uint8_t *x, int32_t step, int32_t length, uint32_t minus, uint32_t flip, uint32_t *to)
{
    const int32_t words = length >> 2, rest = length & 3;
    to = ew_dsp_three_words(x, step, to, words, minus, flip);
    for (int32_t i = 0; rest && i < 3; i++) {
        const uint32_t word = ew_dsp_rest(x + i * step + 4 * words, rest, length) ^ flip;
        to[i] = ew_dsp_even(minus, word);
        to[i + 3] = ew_dsp_odd(minus, word);
    }
}

void ew_dsp_row(const ew_dsp_convolution *layer, ew_dsp_threes *threes, const void *x, void *y, const ew_part *part,
                void *columns)
{
    const uint32_t minus = ((uint32_t)-layer->zero & 0xFFFFu) * 0x10001u, flip = layer->flip * 0x01010101u;
    const int32_t first = layer->is_backward ? part->right - 1 : part->left, sign = layer->is_backward ? -1 : 1;
    const int32_t step = sign * layer->stride * layer->x.pixel, on = sign * layer->y.pixel;
    const uint8_t *from = (const uint8_t *)x + ew_row(&layer->x, part->top * layer->row_stride);
    uint8_t *to = (uint8_t *)y + ew_row(&layer->y, part->top) + first * layer->y.pixel;
    ew_dsp_work work;
    ew_dsp_open(&layer->sums, &work);
    from += first * layer->stride * layer->x.pixel;
    for (int32_t count = part->right - part->left; count > 0; count -= 2, from += 2 * step, to += 2 * on) {
        if (count == 3 && threes) {
            uint8_t *const pixels[3] = {to, to + on, to + 2 * on};
            ew_dsp_three_runs(from, step, layer->depth, minus, flip, (uint32_t *)columns);
            threes(&work, (const uint32_t *)columns, pixels);
            return;
        }
        const int32_t other = count > 1; /* a last pixel without a partner is its own */
        ew_dsp_two_runs(from, from + other * step, layer->depth, minus, flip, (uint32_t *)columns);
        layer->pairs(&work, (const uint32_t *)columns, to, to + other * on);
    }
}
