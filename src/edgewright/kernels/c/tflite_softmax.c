#include "tflite_softmax.h"

enum { EW_SUM_BITS = 12 }; /* integer bits of the sum of a line */

int32_t ew_line_largest(const ew_softmax_line *p, const uint8_t *x)
{
    int32_t best = 0;
    for (int32_t i = 0; i < p->size; i++)
        best = ew_max(best, x[i * p->x_step] ^ p->flip);
    return best;
}

int32_t ew_line_exp(const ew_softmax_line *p, int32_t below)
{
    return below < p->least ? 0 : ew_exp_of_negative(ew_multiply(below, p->factor, p->shift));
}

int32_t ew_line_inverse(const ew_softmax_line *p, const uint8_t *x, int32_t largest, int32_t *power)
{
    int32_t total = 0;
    for (int32_t i = 0; i < p->size; i++)
        total += ew_divide_by_power(ew_line_exp(p, (x[i * p->x_step] ^ p->flip) - largest), EW_SUM_BITS);
    return ew_reciprocal_of(total, EW_SUM_BITS, power);
}

void ew_softmax(const ew_softmax_line *p, const uint8_t *x, uint8_t *y, int32_t first, int32_t last)
{
    const int32_t largest = ew_line_largest(p, x);
    int32_t power;
    const int32_t inverse = ew_line_inverse(p, x, largest, &power);
    for (int32_t i = first; i < last; i++) {
        const int32_t exp = ew_line_exp(p, (x[i * p->x_step] ^ p->flip) - largest);
        y[i * p->y_step] = (uint8_t)(ew_line_share(inverse, power, exp, 8) ^ p->flip);
    }
}
