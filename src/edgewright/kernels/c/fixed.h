/* Fixed-point arithmetic as TFLite's reference kernels do it, and the roundings of other arithmetics. */
#ifndef EW_FIXED_H
#define EW_FIXED_H

#include "base.h"

/* The upper half of 2 * a * b, rounded half up; the one product that overflows saturates. */
static inline int32_t ew_high_multiply(int32_t a, int32_t b)
{
    if (a == b && a == INT32_MIN)
        return INT32_MAX;
    return (int32_t)(((int64_t)a * b + (1 << 30)) >> 31);
}

/* x / 2^exponent, rounded half away from zero; exponent in 0..31. */
static inline int32_t ew_divide_by_power(int32_t x, int32_t exponent)
{
    const int32_t mask = (int32_t)((1u << exponent) - 1u);
    const int32_t half = (mask >> 1) + (x < 0 ? 1 : 0);
    return (x >> exponent) + ((x & mask) > half ? 1 : 0);
}

/* x * multiplier * 2^(shift - 31), rounded twice: after the product and after the shift to the right. */
static inline int32_t ew_multiply(int32_t x, int32_t multiplier, int32_t shift)
{
    if (shift > 0)
        return ew_high_multiply((int32_t)((uint32_t)x << shift), multiplier);
    return ew_divide_by_power(ew_high_multiply(x, multiplier), -shift);
}

/* x * multiplier / 2^shift for 64-bit sums and a multiplier of 15 bits, rounded once (up at a half), saturated. */
static inline int32_t ew_multiply_wide(int64_t x, int32_t multiplier, int32_t shift)
{
    const int64_t steps = (x * multiplier + ((int64_t)1 << (shift - 1))) >> shift;
    return steps > INT32_MAX ? INT32_MAX : steps < INT32_MIN ? INT32_MIN : (int32_t)steps;
}

/* value, rounded half away from zero; what no stored type holds is cut to 2^30. */
static inline int32_t ew_round_away(double value)
{
    value += value < 0 ? -0.5 : 0.5;
    return value >= 1073741824.0 ? 1073741824 : value <= -1073741824.0 ? -1073741824 : (int32_t)value;
}

/* The same for a float, without double: what is left behind the point is exact. */
static inline int32_t ew_round_away_float(float value)
{
    const float most = 1073741824.0f;
    const float kept = value >= -most ? value > most ? most : value : -most; /* NaN becomes the least */
    const int32_t whole = (int32_t)kept;
    const float rest = kept - (float)whole;
    return whole + (rest >= 0.5f ? 1 : rest <= -0.5f ? -1 : 0);
}

/* steps + zero, kept within low..high, which lie within +-2^30 of zero. */
static inline int32_t ew_placed(int32_t steps, int32_t zero, int32_t low, int32_t high)
{
    return ew_between(low - zero, steps, high - zero) + zero;
}

/* x / 2^shift, rounded half to even numbers, or to odd ones where `odd` is 1; shift in 1..30. */
static inline int32_t ew_shift_even(int32_t x, int32_t shift, int32_t odd)
{
    return (x + (1 << (shift - 1)) - 1 + (((x >> shift) ^ odd) & 1)) >> shift;
}

/* Within low..high, which lie within +-2^22, rounded half to even; NaN becomes the least. */
static inline int32_t ew_round_even(float steps, float low, float high)
{
    const float magic = 12582912.0f; /* 1.5 * 2^23: floats from here on are whole */
    steps = steps >= low ? steps : low;
    steps = steps <= high ? steps : high;
    steps += magic;
    return (int32_t)(steps - magic);
}

#endif /* EW_FIXED_H */
