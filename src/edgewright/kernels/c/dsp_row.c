#include "dsp_row.h"

void ew_dsp_row(const ew_dsp_convolution *layer, const void *x, void *y, const ew_part *part, void *columns)
{
    const uint32_t minus = ((uint32_t)-layer->zero & 0xFFFFu) * 0x10001u, flip = layer->flip * 0x01010101u;
    const int32_t first = layer->is_backward ? part->right - 1 : part->left;
    int32_t step = layer->stride * layer->x.pixel, on = layer->y.pixel;
    const uint8_t *from = (const uint8_t *)x + ew_row(&layer->x, part->top * layer->row_stride) + first * step;
    uint8_t *to = (uint8_t *)y + ew_row(&layer->y, part->top) + first * on;
    ew_dsp_work work;
    ew_dsp_open(&layer->sums, &work);
    if (layer->is_backward) {
        step = -step;
        on = -on;
    }
    for (int32_t count = part->right - part->left; count > 0; count -= 2, from += step, to += on) {
        const uint8_t *const one = from;
        uint8_t *const here = to;
        if (count > 1) { /* a last pixel without a partner is its own */
            from += step;
            to += on;
        }
        ew_dsp_two_runs(one, from, layer->depth, minus, flip, (uint32_t *)columns);
        layer->pairs(&work, (const uint32_t *)columns, here, to);
    }
}
