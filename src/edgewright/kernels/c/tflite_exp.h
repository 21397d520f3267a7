/* exp and reciprocals of fixed-point numbers, bit for bit as gemmlowp's fixedpoint.h.
 *
 * A Qn number is an int32_t with n integer bits: its value is raw / 2^(31 - n). */
#ifndef EW_TFLITE_EXP_H
#define EW_TFLITE_EXP_H

#include "fixed.h"

/* exp(x) as Q0, for x <= 0 as Q5. */
int32_t ew_exp_of_negative(int32_t x);

/* 1 / (1 + x) for 0 <= x < 1, both Q0. */
int32_t ew_one_over_one_plus(int32_t x);

/* Zero bits above the highest set bit of a positive number. */
static inline int32_t ew_leading_zeros(int32_t x)
{
    int32_t zeros = 0;
    for (uint32_t bits = (uint32_t)x; bits < 0x80000000u && zeros < 32; bits <<= 1)
        zeros++;
    return zeros;
}

/* x * 2^exponent, saturated. */
static inline int32_t ew_shift_left(int32_t x, int32_t exponent)
{
    const int32_t most = INT32_MAX >> exponent;
    return x > most ? INT32_MAX : x < -most - 1 ? INT32_MIN : (int32_t)((uint32_t)x << exponent);
}

/* (1 / y, e) with x = y * 2^e and 1 <= y < 2: the reciprocal as Q0, of a positive number with `bits` integer bits. */
static inline int32_t ew_reciprocal_of(int32_t x, int32_t bits, int32_t *power)
{
    const int32_t zeros = ew_leading_zeros(x);
    *power = bits - zeros;
    return ew_one_over_one_plus((int32_t)(((uint32_t)x << zeros) - 0x80000000u));
}

#endif /* EW_TFLITE_EXP_H */
