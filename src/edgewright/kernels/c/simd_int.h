/* Vectors of int32, as many lanes as those of float32; and from sums to stored bytes in everybody's arithmetic. */
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

/* From sums to what is stored, as int32 within the type's range. Tables have a number for each channel, in whole panels. */
typedef struct {
    const int32_t *bias;
    const int32_t *multiplier, *shift; /* TFLite: rounded twice; or */
    const double *exact; /* TFLite's dense layers: rounded once, half away from zero; or */
    const float *scale; /* onnxruntime: rounded half to even */
    int32_t zero, low, high; /* zero point, and the range that type and activation leave */
} ew_simd_finish;

#if EW_LANES >= 8
/* ew_multiply with shifts of -30..-1 and all that follows, for even and odd lanes: both roundings are one of 64 bits, since
 * floor((floor(a / 2^31) + b) / 2^n) is floor((a + b * 2^31) / 2^(31 + n)). Numbers are 2^62 larger until they are shifted. */
typedef struct {
    ew_vi multiplier[2], nudge[2], right[2];
    ew_vi offset, low, high; /* what the zero point is larger than those 2^62, and the range of what is stored */
} ew_vi_rounding;
EW_INLINE ew_vi_rounding ew_vi_round_once(ew_vi multiplier, ew_vi shift, int32_t zero, int32_t low, int32_t high)
{
    const ew_vi right = ew_vi_sub(ew_vi_all(0), shift), one = ew_vl_all(1);
    const ew_vi even = right & ew_vl_all(0xffffffff), odd = ew_vl_upper(right);
    const ew_vi half = ew_vl_all((int64_t)1 << 30), most = ew_vl_all(((int64_t)1 << 62) + (1 << 30));
    ew_vi_rounding f;
    f.multiplier[0] = multiplier;
    f.multiplier[1] = ew_vl_upper(multiplier);
    f.nudge[0] = most + ew_vl_left(half, even);
    f.nudge[1] = most + ew_vl_left(half, odd);
    f.right[0] = even + ew_vl_all(31);
    f.right[1] = odd - one; /* and lies in the upper half */
    f.offset = ew_vl_joined(
        ew_vl_right(ew_vl_all((int64_t)1 << 62), f.right[0]), ew_vl_right(ew_vl_all((int64_t)1 << 62), f.right[1]));
    f.offset = ew_vi_sub(ew_vi_all(zero), f.offset);
    f.low = ew_vi_all(low);
    f.high = ew_vi_all(high);
    return f;
}
/* Halves go up, or away from zero: one less in place of negative numbers. */
EW_INLINE ew_vi ew_vi_rounded(ew_vi x, const ew_vi_rounding *f, int32_t is_away)
{
    const ew_vi upper = ew_vl_upper(x), sign = ew_vl_all((int64_t)1 << 31);
    ew_vi even = ew_vl_multiply(x, f->multiplier[0]) + f->nudge[0];
    ew_vi odd = ew_vl_multiply(upper, f->multiplier[1]) + f->nudge[1];
    if (is_away) {
        even = even - (x & sign);
        odd = odd - (upper & sign);
    }
    even = ew_vl_joined(ew_vl_right(even, f->right[0]), ew_vl_right(odd, f->right[1]));
    return ew_vi_clamp(ew_vi_add(even, f->offset), f->low, f->high);
}
#endif

/* What an ending takes: ew_vi_rounded, whose ties matter or become the least value anyway; or ew_vi_multiply; or one
 * rounding of doubles, or of floats. */
enum { EW_ENDING_UP, EW_ENDING_AWAY, EW_ENDING_FIXED, EW_ENDING_EXACT, EW_ENDING_REAL };

/* The same for one vector of channels, in registers: stores of bytes may change any memory, as the compiler sees it. */
typedef struct {
    int32_t kind;
    ew_vi_factor factor;
#if EW_LANES >= 8
    ew_vi_rounding rounding;
#endif
    ew_vf scale;
    const double *exact;
    ew_vi zero, low, high;
} ew_simd_ending;

EW_INLINE ew_simd_ending ew_simd_prepared(const ew_simd_finish *finish, int32_t channel)
{
    ew_simd_ending ending;
    ending.kind = finish->multiplier ? EW_ENDING_FIXED : finish->exact ? EW_ENDING_EXACT : EW_ENDING_REAL;
    ending.exact = finish->exact ? finish->exact + channel : NULL;
    ending.zero = ew_vi_all(finish->zero);
    ending.low = ew_vi_all(finish->low - finish->zero);
    ending.high = ew_vi_all(finish->high - finish->zero);
    ending.scale = ew_vf_all(0.0f);
    ending.factor = ew_vi_prepare(ending.zero, ending.zero);
    if (finish->multiplier)
        ending.factor = ew_vi_prepare(ew_vi_load(finish->multiplier + channel), ew_vi_load(finish->shift + channel));
    else if (!ending.exact)
        ending.scale = ew_vf_load(finish->scale + channel);
#if EW_LANES >= 8
    ending.rounding = ew_vi_round_once(
        ending.factor.multiplier, finish->multiplier ? ew_vi_load(finish->shift + channel) : ending.zero, finish->zero,
        finish->low, finish->high);
    if (finish->multiplier && ew_vi_is_within(ew_vi_load(finish->shift + channel), ew_vi_all(-30), ew_vi_all(-1)))
        ending.kind = finish->low < finish->zero ? EW_ENDING_AWAY : EW_ENDING_UP;
#endif
    return ending;
}

EW_INLINE ew_vi ew_simd_exactly(ew_vi sum, const double *scale)
{
    int32_t lanes[EW_LANES];
    ew_vi_store(lanes, sum);
    for (int32_t i = 0; i < EW_LANES; i++)
        lanes[i] = ew_round_away((double)lanes[i] * scale[i]);
    return ew_vi_load(lanes);
}

EW_INLINE ew_vi ew_simd_stored_as(const ew_simd_ending *ending, int32_t kind, ew_vi sum)
{
#if EW_LANES >= 8
    if (kind <= EW_ENDING_AWAY)
        return ew_vi_rounded(sum, &ending->rounding, kind == EW_ENDING_AWAY);
#endif
    if (kind <= EW_ENDING_FIXED)
        sum = ew_vi_multiply(sum, &ending->factor);
    else if (kind == EW_ENDING_EXACT)
        sum = ew_simd_exactly(sum, ending->exact);
    else /* kept in range before rounding, so that it is an integer */
        sum = ew_vi_nearest(ew_vf_min(
            ew_vi_real(ending->high), ew_vf_max(ew_vi_real(ending->low), ew_vf_mul(ew_vi_real(sum), ending->scale))));
    return ew_vi_add(ew_vi_clamp(sum, ending->low, ending->high), ending->zero);
}

EW_INLINE ew_vi ew_simd_stored(const ew_simd_ending *ending, ew_vi sum) { return ew_simd_stored_as(ending, ending->kind, sum); }

/* The first n lanes as bytes. */
EW_INLINE void ew_simd_put(uint8_t *y, ew_vi stored, int32_t n)
{
    if (n >= EW_LANES) {
        ew_vi_store_bytes(y, stored);
    } else {
#if EW_LANES == 16
        _mm512_mask_cvtepi32_storeu_epi8(y, (__mmask16)((1u << n) - 1u), stored);
#else
        uint8_t lanes[EW_LANES];
        ew_vi_store_bytes(lanes, stored);
        for (int32_t i = 0; i < n; i++)
            y[i] = lanes[i];
#endif
    }
}

/* n bytes (at most a vector's lanes), each with `flip` applied; 0 in the lanes behind them. */
EW_INLINE ew_vi ew_simd_get(const uint8_t *x, int32_t n, uint8_t flip)
{
#if EW_LANES == 16 && defined(__AVX512VL__)
    const __m128i bytes = _mm_maskz_loadu_epi8((__mmask16)((1u << n) - 1u), x);
    return _mm512_cvtepu8_epi32(_mm_xor_si128(bytes, _mm_set1_epi8((char)flip)));
#else
    uint8_t bytes[EW_LANES] = {0};
#if EW_LANES == 8
    if (n == EW_LANES)
        return _mm256_cvtepu8_epi32(
            _mm_xor_si128(_mm_loadl_epi64((const __m128i *)(const void *)x), _mm_set1_epi8((char)flip)));
#endif
    for (int32_t i = 0; i < n; i++)
        bytes[i] = x[i] ^ flip;
    return ew_vi_bytes(bytes);
#endif
}

/* Bytes, each with `flip` applied: 0x80 turns signed ones into unsigned ones 128 larger, and back. Up to 63 bytes behind
 * them change. */
EW_INLINE void ew_simd_flipped(uint8_t *to, const uint8_t *from, int32_t n, uint8_t flip)
{
#if EW_LANES == 16
    const __m512i flips = _mm512_set1_epi8((char)flip);
    int32_t i = 0;
    for (; i + 64 <= n; i += 64)
        _mm512_storeu_si512(to + i, _mm512_xor_si512(_mm512_loadu_si512(from + i), flips));
    if (i < n) {
        const __mmask64 some = ((__mmask64)1 << (n - i)) - 1;
        _mm512_storeu_si512(to + i, _mm512_xor_si512(_mm512_maskz_loadu_epi8(some, from + i), flips));
    }
#else
    const uint64_t flips = flip ? 0x8080808080808080u : 0u;
    int32_t i = 0;
    for (; i + 8 <= n; i += 8) {
        uint64_t eight;
        memcpy(&eight, from + i, 8);
        eight ^= flips;
        memcpy(to + i, &eight, 8);
    }
    for (; i < n; i++)
        to[i] = from[i] ^ flip;
#endif
}

#endif /* EW_SIMD_INT_H */
