/* Activations of many numbers at once. */
#ifndef EW_SIMD_MATH_H
#define EW_SIMD_MATH_H

#include "simd.h"

/* What comes after a sum; numbers that it needs are `a` and `b`. */
enum {
    EW_SIMD_AS_IS = 0,
    EW_SIMD_LEAKY = 1, /* a: slope below 0 */
    EW_SIMD_ELU = 2, /* a: alpha, b: gamma */
    EW_SIMD_HARD_SIGMOID = 3, /* a: slope, b: shift */
    EW_SIMD_SIGMOID = 4,
    EW_SIMD_SILU = 5,
    EW_SIMD_HARD_SWISH = 6,
    EW_SIMD_TANH = 7,
    EW_SIMD_CLAMP = 8 /* a: low, b: high */
};

/* exp(x), within 2 units in the last place; beyond 88.3 that of 88.3, below -87.3 that of -87.3.
 *
 * x = n ln 2 + r with |r| <= ln 2 / 2; exp(r) by a polynomial of degree 7 (Cephes, expf). */
EW_INLINE ew_vf ew_vf_exp(ew_vf x)
{
    const ew_vf magic = ew_vf_all(12582912.0f); /* 1.5 * 2^23: adding it rounds to an integer */
    ew_vf n, r, p;
    x = ew_vf_max(ew_vf_all(-87.3f), ew_vf_min(ew_vf_all(88.3f), x));
    n = ew_vf_fma(x, ew_vf_all(1.44269504f), magic);
    r = ew_vf_sub(n, magic);
    x = ew_vf_fma(r, ew_vf_all(-0.693359375f), x); /* ln 2 in two parts: the first has few bits, so this is exact */
    x = ew_vf_fma(r, ew_vf_all(2.12194440e-4f), x);
    p = ew_vf_all(1.9875691500e-4f);
    p = ew_vf_fma(p, x, ew_vf_all(1.3981999507e-3f));
    p = ew_vf_fma(p, x, ew_vf_all(8.3334519073e-3f));
    p = ew_vf_fma(p, x, ew_vf_all(4.1665795894e-2f));
    p = ew_vf_fma(p, x, ew_vf_all(1.6666665459e-1f));
    p = ew_vf_fma(p, x, ew_vf_all(5.0000001201e-1f));
    p = ew_vf_fma(ew_vf_mul(p, x), x, ew_vf_add(x, ew_vf_all(1.0f)));
    return ew_vf_mul(p, ew_vf_power(n));
}

EW_INLINE ew_vf ew_vf_sigmoid(ew_vf x)
{
    const ew_vf one = ew_vf_all(1.0f);
    return ew_vf_div(one, ew_vf_add(one, ew_vf_exp(ew_vf_sub(ew_vf_all(0.0f), x))));
}

/* 1 - 2 / (exp(2x) + 1) far from 0; near it that would lose digits, and a short series does. */
EW_INLINE ew_vf ew_vf_tanh(ew_vf x)
{
    const ew_vf one = ew_vf_all(1.0f), squared = ew_vf_mul(x, x);
    const ew_vf size = ew_vf_max(x, ew_vf_sub(ew_vf_all(0.0f), x));
    const ew_vf e = ew_vf_exp(ew_vf_add(size, size));
    const ew_vf far = ew_vf_sub(one, ew_vf_div(ew_vf_all(2.0f), ew_vf_add(e, one)));
    ew_vf near = ew_vf_all(-5.70498872745e-3f); /* Cephes, tanhf: for sizes below 0.625 */
    near = ew_vf_fma(near, squared, ew_vf_all(2.06390887954e-2f));
    near = ew_vf_fma(near, squared, ew_vf_all(-5.37397155531e-2f));
    near = ew_vf_fma(near, squared, ew_vf_all(1.33314422036e-1f));
    near = ew_vf_fma(near, squared, ew_vf_all(-3.33332819422e-1f));
    near = ew_vf_fma(ew_vf_mul(near, squared), x, x);
    return ew_vf_if_negative(
        ew_vf_sub(size, ew_vf_all(0.625f)), near, ew_vf_if_negative(x, ew_vf_sub(ew_vf_all(0.0f), far), far));
}

/* alpha * (exp(x) - 1) is taken as alpha * tanh(x / 2) * (exp(x) + 1), which keeps the digits near 0. */
EW_INLINE ew_vf ew_vf_elu(ew_vf x, ew_vf alpha, ew_vf gamma)
{
    const ew_vf half = ew_vf_tanh(ew_vf_mul(x, ew_vf_all(0.5f)));
    const ew_vf minus = ew_vf_mul(half, ew_vf_add(ew_vf_exp(ew_vf_min(ew_vf_all(0.0f), x)), ew_vf_all(1.0f)));
    return ew_vf_mul(gamma, ew_vf_if_negative(x, ew_vf_mul(alpha, minus), x));
}

EW_INLINE ew_vf ew_vf_clamp(ew_vf x, ew_vf low, ew_vf high) { return ew_vf_min(high, ew_vf_max(low, x)); }

EW_INLINE ew_vf ew_vf_activated(ew_vf x, int32_t kind, float a, float b)
{
    switch (kind) {
    case EW_SIMD_LEAKY:
        return ew_vf_if_negative(x, ew_vf_mul(x, ew_vf_all(a)), x);
    case EW_SIMD_ELU:
        return ew_vf_elu(x, ew_vf_all(a), ew_vf_all(b));
    case EW_SIMD_HARD_SIGMOID:
        return ew_vf_clamp(
            ew_vf_add(ew_vf_mul(x, ew_vf_all(a)), ew_vf_all(b)), ew_vf_all(0.0f), ew_vf_all(1.0f));
    case EW_SIMD_SIGMOID:
        return ew_vf_sigmoid(x);
    case EW_SIMD_SILU:
        return ew_vf_mul(x, ew_vf_sigmoid(x));
    case EW_SIMD_HARD_SWISH:
        return ew_vf_div(
            ew_vf_mul(x, ew_vf_clamp(ew_vf_add(x, ew_vf_all(3.0f)), ew_vf_all(0.0f), ew_vf_all(6.0f))), ew_vf_all(6.0f));
    case EW_SIMD_TANH:
        return ew_vf_tanh(x);
    case EW_SIMD_CLAMP:
        return ew_vf_clamp(x, ew_vf_all(a), ew_vf_all(b));
    default:
        return x;
    }
}

/* n numbers in place. The last ones share a vector with numbers that are left alone. */
EW_INLINE void ew_simd_activate_as(float *y, int32_t n, int32_t kind, float a, float b)
{
    int32_t i = 0;
    for (; i + EW_LANES <= n; i += EW_LANES)
        ew_vf_store(y + i, ew_vf_activated(ew_vf_load(y + i), kind, a, b));
    if (i < n)
        ew_vf_store_some(y + i, ew_vf_activated(ew_vf_load_some(y + i, n - i), kind, a, b), n - i);
}

void ew_simd_activate(float *y, int32_t n, int32_t kind, float a, float b);

#endif /* EW_SIMD_MATH_H */
