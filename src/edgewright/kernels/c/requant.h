/* From sums to stored values by a multiplier that was proven right for every sum the layer can reach. */
#ifndef EW_REQUANT_H
#define EW_REQUANT_H

#include "base.h"

/* The upper half of a * b, plus c: one instruction where there is SMMLA. */
EW_INLINE int32_t ew_high_add(int32_t a, int32_t b, int32_t c)
{
#if defined(__ARM_FEATURE_DSP) && defined(__GNUC__)
    int32_t result;
    __asm__("smmla %0, %1, %2, %3" : "=r"(result) : "r"(a), "r"(b), "r"(c));
    return result;
#else
    return (int32_t)(((int64_t)a * b) >> 32) + c;
#endif
}

/* A sum, shifted to the left (`left` is such that it fits), in steps of the output: zero point and rounding are in
 * the offset. */
EW_INLINE int32_t ew_fixed(int32_t sum, int32_t left, int32_t multiplier, int32_t offset, int32_t shift)
{
    return ew_high_add((int32_t)((uint32_t)sum << left), multiplier, offset) >> shift;
}

/* The same where the reference rounds half away from zero: negative sums lose `drop`. */
EW_INLINE int32_t ew_fixed_signed(int32_t sum, int32_t left, int32_t multiplier, int32_t offset, int32_t drop,
                                  int32_t shift)
{
    const int32_t high = ew_high_add((int32_t)((uint32_t)sum << left), multiplier, offset);
    return (high - (sum < 0 ? drop : 0)) >> shift;
}

/* Within low..high. */
EW_INLINE int32_t ew_clamp(int32_t x, int32_t low, int32_t high)
{
    x = x < low ? low : x;
    return x > high ? high : x;
}

#endif /* EW_REQUANT_H */
