#include "tflite_wide_softmax.h"

static int32_t ew_wide_exp(const ew_wide_softmax_line *p, int32_t below)
{
    return ew_interpolated(ew_placed(ew_multiply(below, p->factor, p->shift), 32767, -32768, 32767), p->exps);
}

void ew_wide_softmax(const ew_wide_softmax_line *p, const int16_t *x, int16_t *y, int32_t first, int32_t last)
{
    int32_t largest = -32768, total = 0, zeros, shifted, inverse;
    for (int32_t i = 0; i < p->size; i++)
        largest = ew_max(largest, x[i * p->x_step]);
    for (int32_t i = 0; i < p->size; i++)
        total += ew_wide_exp(p, x[i * p->x_step] - largest);
    zeros = ew_leading_zeros(total);
    shifted = (int32_t)((((uint32_t)total << (zeros - 1)) + (1u << 13)) >> 14);
    inverse = ew_interpolated(ew_between(-32768, shifted - (1 << 15) - (1 << 16), 32767), p->reciprocals);
    for (int32_t i = first; i < last; i++) {
        const int32_t half = (int32_t)((1u << (31 - zeros)) >> 1);
        const int32_t share = (ew_wide_exp(p, x[i * p->x_step] - largest) * inverse + half) >> (31 - zeros);
        y[i * p->y_step] = (int16_t)ew_between(0, share, 32767);
    }
}
