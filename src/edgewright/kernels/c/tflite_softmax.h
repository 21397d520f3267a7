/* Softmax of eight-bit lines, as the reference kernels of TFLite compute it. */
#ifndef EW_TFLITE_SOFTMAX_H
#define EW_TFLITE_SOFTMAX_H

#include "tflite_exp.h"

typedef struct {
    int32_t size;            /* elements of a line */
    int32_t x_step, y_step;  /* from element to element */
    int32_t factor, shift;   /* differences to the largest element, to Q5 */
    int32_t least;           /* differences below it count as minus infinity */
    uint8_t flip;            /* 0x80 for signed bytes: with that bit turned, order is that of unsigned ones */
} ew_softmax_line;

/* The largest element of a line, unsigned. */
int32_t ew_line_largest(const ew_softmax_line *p, const uint8_t *x);

/* exp of an element's distance to the largest one, Q0; 0 where it is too far. */
int32_t ew_line_exp(const ew_softmax_line *p, int32_t below);

/* The reciprocal of the line's sum as Q0, and the power of two that belongs to it. */
int32_t ew_line_inverse(const ew_softmax_line *p, const uint8_t *x, int32_t largest, int32_t *power);

/* An element's share of 1, in steps of 2^-bits from 0 on. */
static inline int32_t ew_line_share(int32_t inverse, int32_t power, int32_t exp, int32_t bits)
{
    const int32_t exponent = power + 31 - bits;
    return exponent > 31 ? 0 : ew_min(ew_divide_by_power(ew_high_multiply(inverse, exp), exponent), (1 << bits) - 1);
}

/* Elements first..last of the softmax of the line x; y is the whole line's place. */
void ew_softmax(const ew_softmax_line *p, const uint8_t *x, uint8_t *y, int32_t first, int32_t last);

#endif /* EW_TFLITE_SOFTMAX_H */
