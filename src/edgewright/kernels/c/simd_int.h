/* Vectors of int32, as many lanes as those of float32. */
#ifndef EW_SIMD_INT_H
#define EW_SIMD_INT_H

#include "fixed.h"
#include "simd.h"

#if EW_LANES == 16
typedef __m512i ew_vi;
EW_INLINE ew_vi ew_vi_load(const int32_t *p) { return _mm512_loadu_si512(p); }
EW_INLINE void ew_vi_store(int32_t *p, ew_vi a) { _mm512_storeu_si512(p, a); }
EW_INLINE ew_vi ew_vi_all(int32_t a) { return _mm512_set1_epi32(a); }
EW_INLINE ew_vi ew_vi_add(ew_vi a, ew_vi b) { return _mm512_add_epi32(a, b); }
EW_INLINE ew_vi ew_vi_sub(ew_vi a, ew_vi b) { return _mm512_sub_epi32(a, b); }
EW_INLINE ew_vi ew_vi_times(ew_vi a, int32_t b) { return _mm512_mullo_epi32(a, _mm512_set1_epi32(b)); }
EW_INLINE ew_vi ew_vi_left(ew_vi a) { return _mm512_slli_epi32(a, 20); } /* times 2^20 */
EW_INLINE ew_vi ew_vi_clamp(ew_vi a, ew_vi low, ew_vi high) { return _mm512_min_epi32(_mm512_max_epi32(a, low), high); }
EW_INLINE ew_vi ew_vi_nearest(ew_vf a) { return _mm512_cvtps_epi32(a); } /* ties to even */
EW_INLINE ew_vf ew_vi_real(ew_vi a) { return _mm512_cvtepi32_ps(a); }
EW_INLINE ew_vi ew_vi_bytes(const uint8_t *p) { return _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)p)); }
EW_INLINE void ew_vi_store_bytes(uint8_t *p, ew_vi a) { _mm_storeu_si128((__m128i *)(void *)p, _mm512_cvtepi32_epi8(a)); }
/* ew_high_multiply of every lane; no multiplier is INT32_MIN. */
EW_INLINE ew_vi ew_vi_high(ew_vi a, ew_vi b)
{
    const ew_vi half = _mm512_set1_epi64(1 << 30);
    const ew_vi even = _mm512_add_epi64(_mm512_mul_epi32(a, b), half);
    const ew_vi odd = _mm512_add_epi64(_mm512_mul_epi32(_mm512_srli_epi64(a, 32), _mm512_srli_epi64(b, 32)), half);
    return _mm512_mask_blend_epi32(0xAAAA, _mm512_srli_epi64(even, 31), _mm512_slli_epi64(odd, 1));
}
/* What ew_multiply of every lane needs, worked out once for many sums. */
typedef struct {
    ew_vi multiplier, left, right, mask;
} ew_vi_factor;
EW_INLINE ew_vi_factor ew_vi_prepare(ew_vi multiplier, ew_vi shift)
{
    const ew_vi none = _mm512_setzero_si512(), one = _mm512_set1_epi32(1);
    ew_vi_factor f;
    f.multiplier = multiplier;
    f.left = _mm512_max_epi32(shift, none);
    f.right = _mm512_max_epi32(_mm512_sub_epi32(none, shift), none);
    f.mask = _mm512_sub_epi32(_mm512_sllv_epi32(one, f.right), one);
    return f;
}
EW_INLINE ew_vi ew_vl_all(int64_t a) { return _mm512_set1_epi64(a); } /* and other vectors of 64 bits */
EW_INLINE ew_vi ew_vl_multiply(ew_vi a, ew_vi b) { return _mm512_mul_epi32(a, b); } /* the lower halves */
EW_INLINE ew_vi ew_vl_left(ew_vi a, ew_vi n) { return _mm512_sllv_epi64(a, n); }
EW_INLINE ew_vi ew_vl_right(ew_vi a, ew_vi n) { return _mm512_srlv_epi64(a, n); }
EW_INLINE ew_vi ew_vl_upper(ew_vi a) { return _mm512_srli_epi64(a, 32); }
EW_INLINE ew_vi ew_vl_joined(ew_vi lower, ew_vi upper) { return _mm512_mask_blend_epi32(0xAAAA, lower, upper); }
EW_INLINE int32_t ew_vi_is_within(ew_vi a, ew_vi low, ew_vi high)
{
    return !(_mm512_cmplt_epi32_mask(a, low) | _mm512_cmpgt_epi32_mask(a, high));
}
EW_INLINE ew_vi ew_vi_multiply(ew_vi x, const ew_vi_factor *f)
{
    ew_vi half, steps;
    x = ew_vi_high(_mm512_sllv_epi32(x, f->left), f->multiplier);
    half = _mm512_add_epi32(_mm512_srli_epi32(f->mask, 1), _mm512_srli_epi32(x, 31));
    steps = _mm512_srav_epi32(x, f->right);
    return _mm512_mask_add_epi32(
        steps, _mm512_cmpgt_epi32_mask(_mm512_and_si512(x, f->mask), half), steps, _mm512_set1_epi32(1));
}
#elif EW_LANES == 8
typedef __m256i ew_vi;
EW_INLINE ew_vi ew_vi_load(const int32_t *p) { return _mm256_loadu_si256((const __m256i *)(const void *)p); }
EW_INLINE void ew_vi_store(int32_t *p, ew_vi a) { _mm256_storeu_si256((__m256i *)(void *)p, a); }
EW_INLINE ew_vi ew_vi_all(int32_t a) { return _mm256_set1_epi32(a); }
EW_INLINE ew_vi ew_vi_add(ew_vi a, ew_vi b) { return _mm256_add_epi32(a, b); }
EW_INLINE ew_vi ew_vi_sub(ew_vi a, ew_vi b) { return _mm256_sub_epi32(a, b); }
EW_INLINE ew_vi ew_vi_times(ew_vi a, int32_t b) { return _mm256_mullo_epi32(a, _mm256_set1_epi32(b)); }
EW_INLINE ew_vi ew_vi_left(ew_vi a) { return _mm256_slli_epi32(a, 20); }
EW_INLINE ew_vi ew_vi_clamp(ew_vi a, ew_vi low, ew_vi high) { return _mm256_min_epi32(_mm256_max_epi32(a, low), high); }
EW_INLINE ew_vi ew_vi_nearest(ew_vf a) { return _mm256_cvtps_epi32(a); }
EW_INLINE ew_vf ew_vi_real(ew_vi a) { return _mm256_cvtepi32_ps(a); }
EW_INLINE ew_vi ew_vi_bytes(const uint8_t *p) { return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)p)); }
EW_INLINE void ew_vi_store_bytes(uint8_t *p, ew_vi a)
{
    const __m256i lowest = _mm256_shuffle_epi8(
        a, _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1)));
    const __m128i both = _mm_unpacklo_epi32(_mm256_castsi256_si128(lowest), _mm256_extracti128_si256(lowest, 1));
    _mm_storel_epi64((__m128i *)(void *)p, both);
}
EW_INLINE ew_vi ew_vi_high(ew_vi a, ew_vi b)
{
    const ew_vi half = _mm256_set1_epi64x(1 << 30);
    const ew_vi even = _mm256_add_epi64(_mm256_mul_epi32(a, b), half);
    const ew_vi odd = _mm256_add_epi64(_mm256_mul_epi32(_mm256_srli_epi64(a, 32), _mm256_srli_epi64(b, 32)), half);
    return _mm256_blend_epi32(_mm256_srli_epi64(even, 31), _mm256_slli_epi64(odd, 1), 0xAA);
}
typedef struct {
    ew_vi multiplier, left, right, mask;
} ew_vi_factor;
EW_INLINE ew_vi_factor ew_vi_prepare(ew_vi multiplier, ew_vi shift)
{
    const ew_vi none = _mm256_setzero_si256(), one = _mm256_set1_epi32(1);
    ew_vi_factor f;
    f.multiplier = multiplier;
    f.left = _mm256_max_epi32(shift, none);
    f.right = _mm256_max_epi32(_mm256_sub_epi32(none, shift), none);
    f.mask = _mm256_sub_epi32(_mm256_sllv_epi32(one, f.right), one);
    return f;
}
EW_INLINE ew_vi ew_vl_all(int64_t a) { return _mm256_set1_epi64x(a); }
EW_INLINE ew_vi ew_vl_multiply(ew_vi a, ew_vi b) { return _mm256_mul_epi32(a, b); }
EW_INLINE ew_vi ew_vl_left(ew_vi a, ew_vi n) { return _mm256_sllv_epi64(a, n); }
EW_INLINE ew_vi ew_vl_right(ew_vi a, ew_vi n) { return _mm256_srlv_epi64(a, n); }
EW_INLINE ew_vi ew_vl_upper(ew_vi a) { return _mm256_srli_epi64(a, 32); }
EW_INLINE ew_vi ew_vl_joined(ew_vi lower, ew_vi upper) { return _mm256_blend_epi32(lower, upper, 0xAA); }
EW_INLINE int32_t ew_vi_is_within(ew_vi a, ew_vi low, ew_vi high)
{
    return !_mm256_movemask_epi8(_mm256_or_si256(_mm256_cmpgt_epi32(low, a), _mm256_cmpgt_epi32(a, high)));
}
EW_INLINE ew_vi ew_vi_multiply(ew_vi x, const ew_vi_factor *f)
{
    ew_vi half;
    x = ew_vi_high(_mm256_sllv_epi32(x, f->left), f->multiplier);
    half = _mm256_add_epi32(_mm256_srli_epi32(f->mask, 1), _mm256_srli_epi32(x, 31));
    return _mm256_sub_epi32(_mm256_srav_epi32(x, f->right), _mm256_cmpgt_epi32(_mm256_and_si256(x, f->mask), half));
}
#elif defined(__aarch64__) && defined(__ARM_NEON)
typedef int32x4_t ew_vi;
EW_INLINE ew_vi ew_vi_load(const int32_t *p) { return vld1q_s32(p); }
EW_INLINE void ew_vi_store(int32_t *p, ew_vi a) { vst1q_s32(p, a); }
EW_INLINE ew_vi ew_vi_all(int32_t a) { return vdupq_n_s32(a); }
EW_INLINE ew_vi ew_vi_add(ew_vi a, ew_vi b) { return vaddq_s32(a, b); }
EW_INLINE ew_vi ew_vi_sub(ew_vi a, ew_vi b) { return vsubq_s32(a, b); }
EW_INLINE ew_vi ew_vi_times(ew_vi a, int32_t b) { return vmulq_n_s32(a, b); }
EW_INLINE ew_vi ew_vi_left(ew_vi a) { return vshlq_n_s32(a, 20); }
EW_INLINE ew_vi ew_vi_clamp(ew_vi a, ew_vi low, ew_vi high) { return vminq_s32(vmaxq_s32(a, low), high); }
EW_INLINE ew_vi ew_vi_nearest(ew_vf a) { return vcvtnq_s32_f32(a); }
EW_INLINE ew_vf ew_vi_real(ew_vi a) { return vcvtq_f32_s32(a); }
EW_INLINE ew_vi ew_vi_bytes(const uint8_t *p)
{
    const uint8_t four[8] = {p[0], p[1], p[2], p[3], 0, 0, 0, 0};
    return vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(vmovl_u8(vld1_u8(four)))));
}
EW_INLINE void ew_vi_store_bytes(uint8_t *p, ew_vi a)
{
    const int16x4_t narrow = vmovn_s32(a);
    const int8x8_t bytes = vmovn_s16(vcombine_s16(narrow, narrow));
    int8_t lanes[8];
    vst1_s8(lanes, bytes);
    memcpy(p, lanes, 4);
}
typedef struct {
    ew_vi multiplier, left, right;
} ew_vi_factor;
EW_INLINE ew_vi_factor ew_vi_prepare(ew_vi multiplier, ew_vi shift)
{
    ew_vi_factor f;
    f.multiplier = multiplier;
    f.left = vmaxq_s32(shift, vdupq_n_s32(0));
    f.right = vminq_s32(shift, vdupq_n_s32(0)); /* negative: what NEON takes for a shift to the right */
    return f;
}
EW_INLINE ew_vi ew_vi_multiply(ew_vi x, const ew_vi_factor *f)
{
    x = vqrdmulhq_s32(vshlq_s32(x, f->left), f->multiplier);
    /* Rounds half up; one less for negative numbers makes that half away from zero. */
    return vrshlq_s32(vqaddq_s32(x, vshrq_n_s32(vandq_s32(x, f->right), 31)), f->right);
}
#else
typedef struct {
    int32_t lane[EW_LANES];
} ew_vi;
#define EW_EACH_LANE for (int32_t i = 0; i < EW_LANES; i++)
EW_INLINE ew_vi ew_vi_load(const int32_t *p)
{
    ew_vi a;
    memcpy(&a, p, sizeof a);
    return a;
}
EW_INLINE void ew_vi_store(int32_t *p, ew_vi a) { memcpy(p, &a, sizeof a); }
EW_INLINE ew_vi ew_vi_all(int32_t a)
{
    ew_vi all;
    EW_EACH_LANE all.lane[i] = a;
    return all;
}
EW_INLINE ew_vi ew_vi_add(ew_vi a, ew_vi b)
{
    EW_EACH_LANE a.lane[i] = (int32_t)((uint32_t)a.lane[i] + (uint32_t)b.lane[i]);
    return a;
}
EW_INLINE ew_vi ew_vi_sub(ew_vi a, ew_vi b)
{
    EW_EACH_LANE a.lane[i] = (int32_t)((uint32_t)a.lane[i] - (uint32_t)b.lane[i]);
    return a;
}
EW_INLINE ew_vi ew_vi_times(ew_vi a, int32_t b)
{
    EW_EACH_LANE a.lane[i] = (int32_t)((uint32_t)a.lane[i] * (uint32_t)b);
    return a;
}
EW_INLINE ew_vi ew_vi_left(ew_vi a)
{
    EW_EACH_LANE a.lane[i] = (int32_t)((uint32_t)a.lane[i] << 20);
    return a;
}
EW_INLINE ew_vi ew_vi_clamp(ew_vi a, ew_vi low, ew_vi high)
{
    EW_EACH_LANE a.lane[i] = ew_between(low.lane[i], a.lane[i], high.lane[i]);
    return a;
}
EW_INLINE ew_vi ew_vi_nearest(ew_vf a)
{
    float real[EW_LANES];
    ew_vi whole;
    ew_vf_store(real, a);
    EW_EACH_LANE
    {
        /* From 2^23 on floats are whole, and adding the magic number would take digits off them. */
        const int32_t is_whole = real[i] >= 4194304.0f || real[i] <= -4194304.0f;
        whole.lane[i] = is_whole ? (int32_t)real[i] : ew_round_even(real[i], -4194304.0f, 4194304.0f);
    }
    return whole;
}
EW_INLINE ew_vf ew_vi_real(ew_vi a)
{
    float real[EW_LANES];
    EW_EACH_LANE real[i] = (float)a.lane[i];
    return ew_vf_load(real);
}
EW_INLINE ew_vi ew_vi_bytes(const uint8_t *p)
{
    ew_vi a;
    EW_EACH_LANE a.lane[i] = p[i];
    return a;
}
EW_INLINE void ew_vi_store_bytes(uint8_t *p, ew_vi a) { EW_EACH_LANE p[i] = (uint8_t)a.lane[i]; }
typedef struct {
    ew_vi multiplier, shift;
} ew_vi_factor;
EW_INLINE ew_vi_factor ew_vi_prepare(ew_vi multiplier, ew_vi shift)
{
    ew_vi_factor f;
    f.multiplier = multiplier;
    f.shift = shift;
    return f;
}
EW_INLINE ew_vi ew_vi_multiply(ew_vi x, const ew_vi_factor *f)
{
    EW_EACH_LANE x.lane[i] = ew_multiply(x.lane[i], f->multiplier.lane[i], f->shift.lane[i]);
    return x;
}
#endif

#endif /* EW_SIMD_INT_H */
