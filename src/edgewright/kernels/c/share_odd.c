#include "share_odd.h"

void ew_share_odd(const ew_dsp_work *work, const uint32_t *columns, uint8_t *one, uint8_t *two)
{
    ew_dsp_work pairs = *work;
    pairs.count = work->count - 1;
    if (pairs.count)
        ew_share_pairs(&pairs, columns, one, two);
    const int16_t *weights = work->weights + (pairs.count >> 1) * work->taps;
    int32_t *const first = (int32_t *)(void *)one + pairs.count, *const second = (int32_t *)(void *)two + pairs.count;
    int32_t a = *first, b = *second;
    for (int32_t i = 0; i < work->taps; i += 2, weights += 2) {
        const uint32_t lower = ew_dsp_even(0, ew_dsp_load(weights));
        a = ew_dsp_mac(lower, columns[i], a);
        b = ew_dsp_mac(lower, columns[i + 1], b);
    }
    *first = a;
    *second = b;
}
