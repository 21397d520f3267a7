#include "dsp_dense.h"

void ew_dsp_dense(const ew_dsp_sums *layer, ew_dsp_fours *fours, const void *x, void *y, int32_t features)
{
    const uint8_t *from = (const uint8_t *)x;
    uint8_t *to = (uint8_t *)y, few[4] = {0, 0, 0, 0}, results[4];
    const int32_t back = -features & 3, rest = layer->count & 3;
    ew_dsp_work work;
    ew_dsp_open(layer, &work);
    if (features < 4) {
        for (int32_t i = 0; i < features; i++)
            few[i] = from[i];
        from = few;
    }
    if (rest) {
        work.count = 4;
        fours(&work, from, layer->count < 4 ? results : to, back);
        for (int32_t i = 0; i < layer->count && layer->count < 4; i++)
            to[i] = results[i];
        work.count = layer->count - rest;
        work.weights += 2 * EW_DSP_PITCH(&work);
        work.channels += 4 * layer->numbers;
        to += rest;
    }
    if (work.count)
        fours(&work, from, to, back);
}
