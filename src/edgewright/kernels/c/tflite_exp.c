#include "tflite_exp.h"

int32_t ew_exp_of_negative(int32_t x)
{
    /* e^-2^k as Q0, for k = -2..4. */
    static const int32_t factors[7] = {1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242};
    const int32_t quarter = 1 << 24;
    const int32_t middle = 1895147668; /* e^-1/8 */
    const int32_t inner = (x & (quarter - 1)) - quarter;
    const int32_t rest = inner - x;
    int32_t t, t2, t3, t4, result;
    if (x == 0)
        return INT32_MAX;
    /* Taylor's series of degree 4 around -1/8, for the part in -1/4..0. */
    t = ew_shift_left(inner, 5) + (1 << 28);
    t2 = ew_high_multiply(t, t);
    t3 = ew_high_multiply(t2, t);
    t4 = ew_high_multiply(t2, t2);
    t2 += ew_high_multiply(ew_divide_by_power(t4, 2) + t3, 715827883);
    result = middle + ew_high_multiply(t + ew_divide_by_power(t2, 1), middle);
    for (int32_t k = 0; k < 7; k++)
        if ((rest >> (24 + k)) & 1)
            result = ew_high_multiply(result, factors[k]);
    return result;
}

int32_t ew_one_over_one_plus(int32_t x)
{
    const int32_t half = (int32_t)(((uint32_t)x + 0x80000000u) >> 1); /* (1 + x) / 2 */
    /* Newton's iteration for the reciprocal in Q2, from 48/17 - 32/17 * half. */
    int32_t y = 1515870810 + ew_high_multiply(half, -1010580540);
    for (int32_t i = 0; i < 3; i++) {
        const int32_t miss = (1 << 29) - ew_high_multiply(half, y);
        y += ew_shift_left(ew_high_multiply(y, miss), 2);
    }
    return ew_shift_left(y, 1);
}
