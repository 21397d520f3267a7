/* Plain integers: computed in 64 bits, where only sums and products of 64-bit numbers can wrap, as they do in numpy. */
#ifndef EW_WHOLE_H
#define EW_WHOLE_H

#include "base.h"

static inline int64_t ew_whole_add(int64_t a, int64_t b) { return (int64_t)((uint64_t)a + (uint64_t)b); }
static inline int64_t ew_whole_sub(int64_t a, int64_t b) { return (int64_t)((uint64_t)a - (uint64_t)b); }
static inline int64_t ew_whole_mul(int64_t a, int64_t b) { return (int64_t)((uint64_t)a * (uint64_t)b); }
static inline int64_t ew_whole_min(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t ew_whole_max(int64_t a, int64_t b) { return a > b ? a : b; }
static inline int64_t ew_whole_neg(int64_t x) { return ew_whole_sub(0, x); }
static inline int64_t ew_whole_abs(int64_t x) { return x < 0 ? ew_whole_neg(x) : x; }
static inline int64_t ew_whole_sign(int64_t x) { return (x > 0) - (x < 0); }
static inline int64_t ew_whole_square(int64_t x) { return ew_whole_mul(x, x); }
static inline int64_t ew_whole_squared_difference(int64_t a, int64_t b)
{
    return ew_whole_square(ew_whole_sub(a, b));
}
/* Cut towards zero. What is divided by zero keeps its size: a number, not a trap. */
static inline int64_t ew_whole_div(int64_t a, int64_t b)
{
    if (b == 0)
        return a < 0 ? ew_whole_neg(a) : a;
    return b == -1 ? ew_whole_neg(a) : a / b;
}
/* a to the power b; a negative power is the fraction cut towards zero. */
static inline int64_t ew_whole_pow(int64_t a, int64_t b)
{
    int64_t result = 1;
    if (b < 0)
        return a == 1 ? 1 : a == -1 ? (b % 2 ? -1 : 1) : 0;
    for (; b > 0; b >>= 1) {
        if (b & 1)
            result = ew_whole_mul(result, a);
        a = ew_whole_mul(a, a);
    }
    return result;
}
/* The root, cut to a whole number. */
static inline int64_t ew_whole_root(int64_t x)
{
    uint64_t root = 0;
    for (uint64_t bit = (uint64_t)1 << 31; bit; bit >>= 1)
        if (x > 0 && (root + bit) * (root + bit) <= (uint64_t)x)
            root += bit;
    return (int64_t)root;
}

#endif /* EW_WHOLE_H */
