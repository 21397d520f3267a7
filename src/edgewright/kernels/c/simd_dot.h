/* Sums of products of bytes, four at a time for each channel, with whatever the processor brings for them. */
#ifndef EW_SIMD_DOT_H
#define EW_SIMD_DOT_H

#include "simd_int.h"

/* Four bytes of a pixel times four of each channel, added to the channels' sums. Weights are signed; EW_DOT_SIGNED says
 * what the other bytes are. ew_dot_input gives every channel the same four bytes; ew_dot_bytes each its own, where a few
 * instructions do that (EW_HAS_DOTS). */
#if EW_LANES == 16 && defined(__AVX512VNNI__)
#define EW_HAS_DOTS 1
#define EW_DOT_SIGNED 0
typedef __m512i ew_dot_x;
typedef __m512i ew_dot_w;
EW_INLINE ew_dot_w ew_dot_weights(const int8_t *p) { return _mm512_loadu_si512(p); }
EW_INLINE ew_dot_x ew_dot_bytes(const uint8_t *p) { return _mm512_loadu_si512(p); }
EW_INLINE ew_dot_x ew_dot_input(const uint8_t *p)
{
    int32_t four;
    memcpy(&four, p, 4);
    return _mm512_set1_epi32(four);
}
EW_INLINE ew_vi ew_dot(ew_vi sum, ew_dot_x x, ew_dot_w w) { return _mm512_dpbusd_epi32(sum, x, w); }
#elif EW_LANES == 16
#define EW_HAS_DOTS 1
#define EW_DOT_SIGNED 0
typedef struct {
    __m512i even, odd; /* 16-bit numbers */
} ew_dot_x;
typedef ew_dot_x ew_dot_w;
EW_INLINE ew_dot_w ew_dot_weights(const int8_t *p)
{
    const __m512i bytes = _mm512_loadu_si512(p);
    const ew_dot_w w = {_mm512_srai_epi16(_mm512_slli_epi16(bytes, 8), 8), _mm512_srai_epi16(bytes, 8)};
    return w;
}
EW_INLINE ew_dot_x ew_dot_split(__m512i bytes)
{
    const ew_dot_x x = {_mm512_and_si512(bytes, _mm512_set1_epi16(0xff)), _mm512_srli_epi16(bytes, 8)};
    return x;
}
EW_INLINE ew_dot_x ew_dot_bytes(const uint8_t *p) { return ew_dot_split(_mm512_loadu_si512(p)); }
EW_INLINE ew_dot_x ew_dot_input(const uint8_t *p)
{
    int32_t four;
    memcpy(&four, p, 4);
    return ew_dot_split(_mm512_set1_epi32(four));
}
EW_INLINE ew_vi ew_dot(ew_vi sum, ew_dot_x x, ew_dot_w w)
{
    const __m512i both = _mm512_add_epi32(_mm512_madd_epi16(x.even, w.even), _mm512_madd_epi16(x.odd, w.odd));
    return _mm512_add_epi32(sum, both);
}
#elif EW_LANES == 8 && defined(__AVXVNNI__)
#define EW_HAS_DOTS 1
#define EW_DOT_SIGNED 0
typedef __m256i ew_dot_x;
typedef __m256i ew_dot_w;
EW_INLINE ew_dot_w ew_dot_weights(const int8_t *p) { return _mm256_loadu_si256((const __m256i *)(const void *)p); }
EW_INLINE ew_dot_x ew_dot_bytes(const uint8_t *p) { return _mm256_loadu_si256((const __m256i *)(const void *)p); }
EW_INLINE ew_dot_x ew_dot_input(const uint8_t *p)
{
    int32_t four;
    memcpy(&four, p, 4);
    return _mm256_set1_epi32(four);
}
EW_INLINE ew_vi ew_dot(ew_vi sum, ew_dot_x x, ew_dot_w w) { return _mm256_dpbusd_avx_epi32(sum, x, w); }
#elif EW_LANES == 8
#define EW_HAS_DOTS 1
#define EW_DOT_SIGNED 0
typedef struct {
    __m256i even, odd;
} ew_dot_x;
typedef ew_dot_x ew_dot_w;
EW_INLINE ew_dot_w ew_dot_weights(const int8_t *p)
{
    const __m256i bytes = _mm256_loadu_si256((const __m256i *)(const void *)p);
    const ew_dot_w w = {_mm256_srai_epi16(_mm256_slli_epi16(bytes, 8), 8), _mm256_srai_epi16(bytes, 8)};
    return w;
}
EW_INLINE ew_dot_x ew_dot_split(__m256i bytes)
{
    const ew_dot_x x = {_mm256_and_si256(bytes, _mm256_set1_epi16(0xff)), _mm256_srli_epi16(bytes, 8)};
    return x;
}
EW_INLINE ew_dot_x ew_dot_bytes(const uint8_t *p)
{
    return ew_dot_split(_mm256_loadu_si256((const __m256i *)(const void *)p));
}
EW_INLINE ew_dot_x ew_dot_input(const uint8_t *p)
{
    int32_t four;
    memcpy(&four, p, 4);
    return ew_dot_split(_mm256_set1_epi32(four));
}
EW_INLINE ew_vi ew_dot(ew_vi sum, ew_dot_x x, ew_dot_w w)
{
    const __m256i both = _mm256_add_epi32(_mm256_madd_epi16(x.even, w.even), _mm256_madd_epi16(x.odd, w.odd));
    return _mm256_add_epi32(sum, both);
}
#elif defined(__aarch64__) && defined(__ARM_NEON)
#if defined(__ARM_FEATURE_DOTPROD)
#define EW_HAS_DOTS 1
#else
#define EW_HAS_DOTS 0
#endif
#define EW_DOT_SIGNED 1
typedef int8x16_t ew_dot_x;
typedef int8x16_t ew_dot_w;
EW_INLINE ew_dot_w ew_dot_weights(const int8_t *p) { return vld1q_s8(p); }
EW_INLINE ew_dot_x ew_dot_input(const uint8_t *p)
{
    int32_t four;
    memcpy(&four, p, 4);
    return vreinterpretq_s8_s32(vdupq_n_s32(four));
}
EW_INLINE ew_vi ew_dot(ew_vi sum, ew_dot_x x, ew_dot_w w)
{
#if defined(__ARM_FEATURE_DOTPROD)
    return vdotq_s32(sum, w, x);
#else
    const int32x4_t low = vpaddlq_s16(vmull_s8(vget_low_s8(x), vget_low_s8(w)));
    const int32x4_t high = vpaddlq_s16(vmull_high_s8(x, w));
    return vaddq_s32(sum, vpaddq_s32(low, high));
#endif
}
#else
#define EW_HAS_DOTS 0
#define EW_DOT_SIGNED 1
typedef struct {
    int8_t byte[4];
} ew_dot_x;
typedef const int8_t *ew_dot_w;
EW_INLINE ew_dot_w ew_dot_weights(const int8_t *p) { return p; }
EW_INLINE ew_dot_x ew_dot_input(const uint8_t *p)
{
    ew_dot_x x;
    memcpy(&x, p, 4);
    return x;
}
EW_INLINE ew_vi ew_dot(ew_vi sum, ew_dot_x x, ew_dot_w w)
{
    for (int32_t i = 0; i < EW_LANES; i++, w += 4)
        sum.lane[i] += x.byte[0] * w[0] + x.byte[1] * w[1] + x.byte[2] * w[2] + x.byte[3] * w[3];
    return sum;
}
#endif

/* What makes the input's bytes what is multiplied here; and what these are larger than the numbers they stand for. */
EW_INLINE uint8_t ew_dot_flip(int32_t is_signed) { return is_signed != EW_DOT_SIGNED ? 0x80 : 0; }
EW_INLINE int32_t ew_dot_surplus(int32_t is_signed, int32_t zero)
{
    return zero + (is_signed == EW_DOT_SIGNED ? 0 : is_signed ? 128 : -128);
}

/* Where a sum starts, its bias less that surplus for all weights: of the numbers for both kinds of bytes the one for these. */
#if EW_DOT_SIGNED
#define EW_START(for_signed, for_unsigned) (for_signed)
#else
#define EW_START(for_signed, for_unsigned) (for_unsigned)
#endif

#endif /* EW_SIMD_DOT_H */
