/* Vectors of float32 on whatever the compiler is told to build for: AVX-512, AVX2, NEON, any 16-byte vectors, or none.
 *
 * Loads and stores need no alignment. Multiply-adds are fused where the processor can, also under -ffp-contract=off. */
#ifndef EW_SIMD_H
#define EW_SIMD_H

#include "base.h"

#include <math.h>

#if (defined(__AVX512F__) && defined(__AVX512BW__)) || (defined(__AVX2__) && defined(__FMA__))
#include <immintrin.h>
#elif defined(__aarch64__) && defined(__ARM_NEON)
#include <arm_neon.h>
#endif

#define EW_PANEL 16 /* output channels side by side in packed weights: a multiple of every vector's lanes */

#if defined(__AVX512F__) && defined(__AVX512BW__)
#define EW_LANES 16
typedef __m512 ew_vf;
EW_INLINE ew_vf ew_vf_load(const float *p) { return _mm512_loadu_ps(p); }
EW_INLINE void ew_vf_store(float *p, ew_vf a) { _mm512_storeu_ps(p, a); }
EW_INLINE ew_vf ew_vf_all(float a) { return _mm512_set1_ps(a); }
EW_INLINE ew_vf ew_vf_fma(ew_vf a, ew_vf b, ew_vf c) { return _mm512_fmadd_ps(a, b, c); }
/* Of a number and NaN in `b`, NaN: as comparisons leave it. */
EW_INLINE ew_vf ew_vf_max(ew_vf a, ew_vf b) { return _mm512_max_ps(a, b); }
EW_INLINE ew_vf ew_vf_min(ew_vf a, ew_vf b) { return _mm512_min_ps(a, b); }
EW_INLINE ew_vf ew_vf_sqrt(ew_vf a) { return _mm512_sqrt_ps(a); }
/* The value of `a` where `x` is negative, that of `b` elsewhere. */
EW_INLINE ew_vf ew_vf_if_negative(ew_vf x, ew_vf a, ew_vf b)
{
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_LT_OQ), b, a);
}
/* 2^n for n the integer in the lowest bits of a number that 1.5 * 2^23 was added to. */
EW_INLINE ew_vf ew_vf_power(ew_vf n)
{
    return _mm512_castsi512_ps(_mm512_add_epi32(_mm512_slli_epi32(_mm512_castps_si512(n), 23), _mm512_set1_epi32(0x3f800000)));
}
#elif defined(__AVX2__) && defined(__FMA__)
#define EW_LANES 8
typedef __m256 ew_vf;
EW_INLINE ew_vf ew_vf_load(const float *p) { return _mm256_loadu_ps(p); }
EW_INLINE void ew_vf_store(float *p, ew_vf a) { _mm256_storeu_ps(p, a); }
EW_INLINE ew_vf ew_vf_all(float a) { return _mm256_set1_ps(a); }
EW_INLINE ew_vf ew_vf_fma(ew_vf a, ew_vf b, ew_vf c) { return _mm256_fmadd_ps(a, b, c); }
EW_INLINE ew_vf ew_vf_max(ew_vf a, ew_vf b) { return _mm256_max_ps(a, b); }
EW_INLINE ew_vf ew_vf_min(ew_vf a, ew_vf b) { return _mm256_min_ps(a, b); }
EW_INLINE ew_vf ew_vf_sqrt(ew_vf a) { return _mm256_sqrt_ps(a); }
EW_INLINE ew_vf ew_vf_if_negative(ew_vf x, ew_vf a, ew_vf b)
{
    return _mm256_blendv_ps(b, a, _mm256_cmp_ps(x, _mm256_setzero_ps(), _CMP_LT_OQ));
}
EW_INLINE ew_vf ew_vf_power(ew_vf n)
{
    return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_slli_epi32(_mm256_castps_si256(n), 23), _mm256_set1_epi32(0x3f800000)));
}
#elif defined(__aarch64__) && defined(__ARM_NEON)
#define EW_LANES 4
typedef float32x4_t ew_vf;
EW_INLINE ew_vf ew_vf_load(const float *p) { return vld1q_f32(p); }
EW_INLINE void ew_vf_store(float *p, ew_vf a) { vst1q_f32(p, a); }
EW_INLINE ew_vf ew_vf_all(float a) { return vdupq_n_f32(a); }
EW_INLINE ew_vf ew_vf_fma(ew_vf a, ew_vf b, ew_vf c) { return vfmaq_f32(c, a, b); }
EW_INLINE ew_vf ew_vf_max(ew_vf a, ew_vf b) { return vmaxq_f32(a, b); }
EW_INLINE ew_vf ew_vf_min(ew_vf a, ew_vf b) { return vminq_f32(a, b); }
EW_INLINE ew_vf ew_vf_sqrt(ew_vf a) { return vsqrtq_f32(a); }
EW_INLINE ew_vf ew_vf_if_negative(ew_vf x, ew_vf a, ew_vf b) { return vbslq_f32(vcltzq_f32(x), a, b); }
EW_INLINE ew_vf ew_vf_power(ew_vf n)
{
    return vreinterpretq_f32_s32(vaddq_s32(vshlq_n_s32(vreinterpretq_s32_f32(n), 23), vdupq_n_s32(0x3f800000)));
}
#elif defined(__GNUC__)
#define EW_LANES 4
typedef float ew_vf __attribute__((vector_size(16)));
typedef int32_t ew_vf_bits __attribute__((vector_size(16)));
typedef uint32_t ew_vf_word __attribute__((vector_size(16)));
EW_INLINE ew_vf ew_vf_load(const float *p)
{
    ew_vf a;
    memcpy(&a, p, sizeof a);
    return a;
}
EW_INLINE void ew_vf_store(float *p, ew_vf a) { memcpy(p, &a, sizeof a); }
EW_INLINE ew_vf ew_vf_all(float a)
{
    const ew_vf all = {a, a, a, a};
    return all;
}
EW_INLINE ew_vf ew_vf_fma(ew_vf a, ew_vf b, ew_vf c) { return a * b + c; }
EW_INLINE ew_vf ew_vf_select(ew_vf_bits mask, ew_vf a, ew_vf b)
{
    return (ew_vf)((mask & (ew_vf_bits)a) | (~mask & (ew_vf_bits)b));
}
EW_INLINE ew_vf ew_vf_max(ew_vf a, ew_vf b) { return ew_vf_select((ew_vf_bits)(a > b), a, b); }
EW_INLINE ew_vf ew_vf_min(ew_vf a, ew_vf b) { return ew_vf_select((ew_vf_bits)(a < b), a, b); }
EW_INLINE ew_vf ew_vf_sqrt(ew_vf a)
{
    const ew_vf roots = {sqrtf(a[0]), sqrtf(a[1]), sqrtf(a[2]), sqrtf(a[3])};
    return roots;
}
EW_INLINE ew_vf ew_vf_if_negative(ew_vf x, ew_vf a, ew_vf b)
{
    return ew_vf_select((ew_vf_bits)(x < ew_vf_all(0.0f)), a, b);
}
EW_INLINE ew_vf ew_vf_power(ew_vf n) { return (ew_vf)(((ew_vf_word)n << 23) + 0x3f800000u); }
#else
#define EW_LANES 1
typedef float ew_vf;
EW_INLINE ew_vf ew_vf_load(const float *p) { return *p; }
EW_INLINE void ew_vf_store(float *p, ew_vf a) { *p = a; }
EW_INLINE ew_vf ew_vf_all(float a) { return a; }
EW_INLINE ew_vf ew_vf_fma(ew_vf a, ew_vf b, ew_vf c) { return a * b + c; }
EW_INLINE ew_vf ew_vf_max(ew_vf a, ew_vf b) { return a > b ? a : b; }
EW_INLINE ew_vf ew_vf_min(ew_vf a, ew_vf b) { return a < b ? a : b; }
EW_INLINE ew_vf ew_vf_sqrt(ew_vf a) { return sqrtf(a); }
EW_INLINE ew_vf ew_vf_if_negative(ew_vf x, ew_vf a, ew_vf b) { return x < 0.0f ? a : b; }
EW_INLINE ew_vf ew_vf_power(ew_vf n)
{
    uint32_t bits;
    memcpy(&bits, &n, sizeof bits);
    bits = (bits << 23) + 0x3f800000u;
    memcpy(&n, &bits, sizeof n);
    return n;
}
#endif

/* Operators mean the same for numbers and, with GCC and clang, for vectors. */
EW_INLINE ew_vf ew_vf_add(ew_vf a, ew_vf b) { return a + b; }
EW_INLINE ew_vf ew_vf_sub(ew_vf a, ew_vf b) { return a - b; }
EW_INLINE ew_vf ew_vf_mul(ew_vf a, ew_vf b) { return a * b; }
EW_INLINE ew_vf ew_vf_div(ew_vf a, ew_vf b) { return a / b; }

/* The first `n` lanes, and nothing behind them; zeros in the others. */
#if EW_LANES == 16
EW_INLINE ew_vf ew_vf_load_some(const float *p, int32_t n)
{
    return _mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1u), p);
}
EW_INLINE void ew_vf_store_some(float *p, ew_vf a, int32_t n)
{
    _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1u), a);
}
#elif EW_LANES == 8
EW_INLINE __m256i ew_vf_first(int32_t n)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
EW_INLINE ew_vf ew_vf_load_some(const float *p, int32_t n) { return _mm256_maskload_ps(p, ew_vf_first(n)); }
EW_INLINE void ew_vf_store_some(float *p, ew_vf a, int32_t n) { _mm256_maskstore_ps(p, ew_vf_first(n), a); }
#else
static inline ew_vf ew_vf_load_some(const float *p, int32_t n)
{
    float lanes[EW_LANES] = {0.0f};
    for (int32_t i = 0; i < n; i++)
        lanes[i] = p[i];
    return ew_vf_load(lanes);
}

static inline void ew_vf_store_some(float *p, ew_vf a, int32_t n)
{
    float lanes[EW_LANES];
    ew_vf_store(lanes, a);
    for (int32_t i = 0; i < n; i++)
        p[i] = lanes[i];
}
#endif

EW_INLINE void ew_vf_copy(float *to, const float *from, int32_t n)
{
    int32_t i = 0;
    for (; i + EW_LANES <= n; i += EW_LANES)
        ew_vf_store(to + i, ew_vf_load(from + i));
    if (i < n)
        ew_vf_store_some(to + i, ew_vf_load_some(from + i, n - i), n - i);
}

/* The same where there is room for a whole vector at the end: what is behind the n numbers changes. */
EW_INLINE void ew_vf_copy_over(float *to, const float *from, int32_t n)
{
#if EW_LANES == 16
    int32_t i = 0;
    for (; i + EW_LANES <= n; i += EW_LANES)
        ew_vf_store(to + i, ew_vf_load(from + i));
    if (i < n)
        ew_vf_store(to + i, ew_vf_load_some(from + i, n - i));
#else
    int32_t i = 0;
    for (; i + EW_LANES < n; i += EW_LANES)
        ew_vf_store(to + i, ew_vf_load(from + i));
    if (n >= EW_LANES)
        ew_vf_store(to + n - EW_LANES, ew_vf_load(from + n - EW_LANES)); /* some of them once more */
    else
        ew_vf_copy(to, from, n);
#endif
}

/* Taps k with low <= at + k * step < high, from `first` on; how many there are. */
static inline int32_t ew_simd_inside(int32_t at, int32_t step, int32_t taps, int32_t low, int32_t high, int32_t *first)
{
    int32_t begin = 0, end = taps;
    if (at >= low && at + (taps - 1) * step < high) { /* all of them, nearly always */
        *first = 0;
        return taps;
    }
    while (begin < taps && at + begin * step < low)
        begin++;
    while (end > begin && at + (end - 1) * step >= high)
        end--;
    *first = begin;
    return end - begin;
}

#endif /* EW_SIMD_H */
