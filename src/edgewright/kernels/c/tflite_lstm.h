/* Functions of 16-bit numbers as TFLite's LSTM layers compute them (gemmlowp): Qn is raw / 2^(15 - n). */
#ifndef EW_TFLITE_LSTM_H
#define EW_TFLITE_LSTM_H

#include "fixed.h"

static inline int32_t ew_saturated_16(int32_t x)
{
    return ew_between(-32768, x, 32767);
}

/* The upper half of 2 * a * b, rounded half up, saturated. */
static inline int32_t ew_product_16(int32_t a, int32_t b)
{
    const int32_t steps = (a * b + (1 << 14)) >> 15;
    return steps > 32767 ? 32767 : steps;
}

/* exp(x) as Q0, for x <= 0 as Qn: a series for the part in -1/4..0, factors exp(-2^k) for the other bits. */
static inline int32_t ew_exp_16(int32_t x, int32_t bits)
{
    static const int16_t factors[7] = {25520, 19875, 12055, 4435, 600, 11, 0};
    const int32_t fraction = 15 - bits, quarter = 1 << (fraction - 2);
    const int32_t inner = (x & (quarter - 1)) - quarter, rest = (inner - x) >> (fraction - 2);
    const int32_t y = inner * (1 << bits) + (1 << 12);
    const int32_t y2 = ew_product_16(y, y), y3 = ew_product_16(y2, y), y4 = ew_product_16(y2, y2);
    const int32_t tail = ew_product_16(ew_divide_by_power(y4, 2) + y3, 10923) + y2;
    int32_t result = ew_saturated_16(28918 + ew_product_16(y + ew_divide_by_power(tail, 1), 28918));
    if (x == 0)
        return 32767;
    if (bits > 5 && x < -32 * (1 << fraction))
        return 0;
    for (int32_t k = 0; k < bits + 2 && k < 7; k++)
        if ((rest >> k) & 1)
            result = ew_product_16(result, factors[k]);
    return result;
}

/* 2 / (1 + x) as Q2, for x in 0..1 as Q0: Newton's iteration. */
static inline int32_t ew_inverse_16(int32_t x)
{
    const int32_t half = (x + 32768) >> 1;
    int32_t y = 23130 + ew_product_16(half, -15420);
    for (int32_t i = 0; i < 3; i++)
        y += ew_saturated_16(ew_product_16(y, (1 << 13) - ew_product_16(half, y)) * 4);
    return y;
}

/* Of a Q3 number, as Q0. */
static inline int32_t ew_sigmoid_16(int32_t x)
{
    const int32_t value = ew_saturated_16(ew_inverse_16(ew_exp_16(x > 0 ? -x : x, 3)) * 2);
    return x == 0 ? 1 << 14 : x > 0 ? value : 32767 - value;
}

/* Of a Qn number, as Q0. */
static inline int32_t ew_tanh_16(int32_t x, int32_t bits)
{
    const int32_t value = ew_saturated_16((ew_inverse_16(ew_exp_16(x > 0 ? -x : x, bits + 1)) - (1 << 13)) * 4);
    return x == 0 ? 0 : x > 0 ? value : -value;
}

#endif
