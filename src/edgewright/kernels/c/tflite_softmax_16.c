#include "tflite_softmax_16.h"

void ew_softmax_16(const ew_softmax_line *p, const uint8_t *x, int16_t *y, int32_t first, int32_t last)
{
    const int32_t largest = ew_line_largest(p, x);
    int32_t power;
    const int32_t inverse = ew_line_inverse(p, x, largest, &power);
    for (int32_t i = first; i < last; i++) {
        const int32_t exp = ew_line_exp(p, (x[i * p->x_step] ^ p->flip) - largest);
        y[i * p->y_step] = (int16_t)(ew_line_share(inverse, power, exp, 16) - 32768);
    }
}
