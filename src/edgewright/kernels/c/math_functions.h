/* Functions of one float that stand on the C library's mathematics. */
#ifndef EW_MATH_FUNCTIONS_H
#define EW_MATH_FUNCTIONS_H

#include "real.h"
#include <math.h>

static inline float ew_elu(float x, float alpha, float factor)
{
    return factor * (x > 0.0f ? x : alpha * expm1f(x));
}
static inline float ew_sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }
static inline float ew_silu(float x) { return x / (1.0f + expf(-x)); }
static inline float ew_softplus(float x) { return ew_at_least(x, 0.0f) + log1pf(expf(-ew_abs(x))); }
static inline float ew_mish(float x) { return x * tanhf(ew_softplus(x)); }
static inline float ew_gelu(float x) { return x * (1.0f + erff(x * 0.70710678f)) / 2.0f; }
static inline float ew_gelu_tanh(float x)
{
    return x * (1.0f + tanhf(0.79788456f * (x + 0.044715f * x * x * x))) / 2.0f;
}
static inline float ew_rsqrt(float x) { return 1.0f / sqrtf(x); }
static inline float ew_round(float x) { return rintf(x); } /* half to even */
/* The root in double, from that in float: one step of Newton's doubles the digits. */
static inline double ew_root(double x)
{
    const double guess = (double)sqrtf((float)x);
    return guess > 0.0 ? 0.5 * (guess + x / guess) : guess;
}

#endif /* EW_MATH_FUNCTIONS_H */
