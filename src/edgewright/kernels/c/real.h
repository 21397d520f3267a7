/* Functions of one float that need no mathematics library. Comparisons are written so that NaN stays NaN. */
#ifndef EW_REAL_H
#define EW_REAL_H

#include "base.h"

static inline float ew_at_least(float x, float low) { return x < low ? low : x; }
static inline float ew_at_most(float x, float high) { return x > high ? high : x; }
static inline float ew_clamp_real(float x, float low, float high) { return x < low ? low : x > high ? high : x; }
static inline float ew_leaky_relu(float x, float alpha) { return x >= 0.0f ? x : x * alpha; }
static inline float ew_hard_sigmoid(float x, float alpha, float beta)
{
    return ew_clamp_real(x * alpha + beta, 0.0f, 1.0f);
}
static inline float ew_hard_swish(float x) { return x * ew_clamp_real(x + 3.0f, 0.0f, 6.0f) / 6.0f; }
static inline float ew_abs(float x) { return x < 0.0f ? -x : x == 0.0f ? 0.0f : x; }
static inline float ew_neg(float x) { return -x; }
static inline float ew_reciprocal(float x) { return 1.0f / x; }
static inline float ew_sign(float x) { return x > 0.0f ? 1.0f : x < 0.0f ? -1.0f : x; }
static inline float ew_softsign(float x) { return x / (1.0f + ew_abs(x)); }
static inline float ew_square(float x) { return x * x; }
static inline float ew_squared_difference(float a, float b) { return (a - b) * (a - b); }
static inline float ew_minimum(float a, float b) { return b < a || b != b ? b : a; }
static inline float ew_maximum(float a, float b) { return b > a || b != b ? b : a; }

/* Cut towards zero; what no integer can hold becomes the nearest that exists, NaN the least. */
static inline int32_t ew_whole(float x)
{
    return x >= 2147483648.0f ? INT32_MAX : x >= -2147483648.0f ? (int32_t)x : INT32_MIN;
}
static inline int64_t ew_whole64(float x)
{
    return x >= 9223372036854775808.0f ? INT64_MAX : x >= -9223372036854775808.0f ? (int64_t)x : INT64_MIN;
}

#endif /* EW_REAL_H */
