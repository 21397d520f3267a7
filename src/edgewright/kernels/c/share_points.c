#include "share_points.h"

void ew_share_points(const ew_share_point *layer, const void *x, int32_t *y, int32_t count, void *columns)
{
    const uint8_t *from = (const uint8_t *)x;
    const uint32_t minus = ((uint32_t)-layer->zero & 0xFFFFu) * 0x10001u, flip = layer->flip * 0x01010101u;
    const int32_t depth = layer->depth, next = layer->x, step = layer->y;
    ew_dsp_pairs *const pairs = layer->pairs;
    ew_dsp_work work;
    ew_dsp_open(&layer->sums, &work);
    for (; count > 0; count -= 2, from += 2 * next, y += 2 * step) { /* a last pixel without a partner is its own */
        const int32_t other = count > 1;
        ew_dsp_two_runs(from, other ? from + next : from, depth, minus, flip, (uint32_t *)columns);
        pairs(&work, (const uint32_t *)columns, (uint8_t *)y, (uint8_t *)(other ? y + step : y));
    }
}
