/* From sums to stored bytes in everybody's arithmetic, and bytes as vectors take them. */
#ifndef EW_SIMD_ENDING_H
#define EW_SIMD_ENDING_H

#include "simd_int.h"

/* From sums to what is stored, as int32 within the type's range. Tables have a number for each channel, in whole panels. */
typedef struct {
    const int32_t *multiplier, *shift; /* TFLite: rounded twice; or */
    const double *exact; /* TFLite's dense layers: rounded once, half away from zero; or */
    const float *scale; /* onnxruntime: rounded half to even */
    int32_t zero, low, high; /* zero point, and the range that type and activation leave */
} ew_simd_finish;

/* What becomes of sums: fixed-point numbers, where ties matter or become the least value anyway; those with any shifts; one
 * rounding of doubles; or one of floats. */
enum { EW_ENDING_UP, EW_ENDING_AWAY, EW_ENDING_FIXED, EW_ENDING_EXACT, EW_ENDING_REAL };

#if EW_LANES >= 8
/* ew_multiply with shifts of -30..-1 and all that follows, for even and odd lanes: both roundings are one of 64 bits, since
 * floor((floor(a / 2^31) + b) / 2^n) is floor((a + b * 2^31) / 2^(31 + n)). Numbers are 2^62 larger until they are shifted. */
typedef struct {
    ew_vi multiplier[2], nudge[2], right[2];
    ew_vi offset, low, high; /* what the zero point is larger than those 2^62, and the range of what is stored */
} ew_simd_rounding;

EW_INLINE int32_t ew_simd_kind(const ew_simd_finish *finish, int32_t channel)
{
    if (!finish->multiplier)
        return finish->exact ? EW_ENDING_EXACT : EW_ENDING_REAL;
    if (!ew_vi_is_within(ew_vi_load(finish->shift + channel), ew_vi_all(-30), ew_vi_all(-1)))
        return EW_ENDING_FIXED;
    return finish->low < finish->zero ? EW_ENDING_AWAY : EW_ENDING_UP;
}

/* For one vector of channels whose kind is UP or AWAY. */
EW_INLINE ew_simd_rounding ew_simd_round_once(const ew_simd_finish *finish, int32_t channel)
{
    const ew_vi multiplier = ew_vi_load(finish->multiplier + channel);
    const ew_vi right = ew_vi_sub(ew_vi_all(0), ew_vi_load(finish->shift + channel));
    const ew_vi even = right & ew_vl_all(0xffffffff), odd = ew_vl_upper(right);
    const ew_vi half = ew_vl_all((int64_t)1 << 30), surplus = ew_vl_all((int64_t)1 << 62);
    ew_simd_rounding f;
    f.multiplier[0] = multiplier;
    f.multiplier[1] = ew_vl_upper(multiplier);
    f.nudge[0] = surplus + half + ew_vl_left(half, even);
    f.nudge[1] = surplus + half + ew_vl_left(half, odd);
    f.right[0] = even + ew_vl_all(31);
    f.right[1] = odd - ew_vl_all(1); /* the result lies in the upper half */
    f.offset = ew_vi_sub(
        ew_vi_all(finish->zero), ew_vl_joined(ew_vl_right(surplus, f.right[0]), ew_vl_right(surplus, f.right[1])));
    f.low = ew_vi_all(finish->low);
    f.high = ew_vi_all(finish->high);
    return f;
}

EW_INLINE ew_simd_rounding ew_simd_no_rounding(void)
{
    const ew_vi none = ew_vi_all(0);
    const ew_simd_rounding f = {{none, none}, {none, none}, {none, none}, none, none, none};
    return f;
}

/* What is stored. Halves go up, or away from zero: one less in place of negative numbers. */
EW_INLINE ew_vi ew_simd_rounded(const ew_simd_rounding *f, int32_t kind, ew_vi x)
{
    const ew_vi upper = ew_vl_upper(x), sign = ew_vl_all((int64_t)1 << 31);
    ew_vi even = ew_vl_multiply(x, f->multiplier[0]) + f->nudge[0];
    ew_vi odd = ew_vl_multiply(upper, f->multiplier[1]) + f->nudge[1];
    if (kind == EW_ENDING_AWAY) {
        even = even - (x & sign);
        odd = odd - (upper & sign);
    }
    even = ew_vl_joined(ew_vl_right(even, f->right[0]), ew_vl_right(odd, f->right[1]));
    return ew_vi_clamp(ew_vi_add(even, f->offset), f->low, f->high);
}

/* ew_round_away of four products. */
EW_INLINE __m128i ew_simd_exactly_four(__m128i sum, const double *scale)
{
    const __m256d most = _mm256_set1_pd(1073741824.0), sign = _mm256_set1_pd(-0.0), half = _mm256_set1_pd(0.5);
    __m256d v = _mm256_mul_pd(_mm256_cvtepi32_pd(sum), _mm256_loadu_pd(scale));
    v = _mm256_add_pd(v, _mm256_or_pd(_mm256_and_pd(v, sign), half));
    return _mm256_cvttpd_epi32(_mm256_max_pd(_mm256_min_pd(v, most), _mm256_xor_pd(most, sign)));
}
EW_INLINE __m256i ew_simd_exactly_eight(__m256i sum, const double *scale)
{
    const __m128i low = ew_simd_exactly_four(_mm256_castsi256_si128(sum), scale);
    return _mm256_inserti128_si256(
        _mm256_castsi128_si256(low), ew_simd_exactly_four(_mm256_extracti128_si256(sum, 1), scale + 4), 1);
}
#else
typedef struct {
    ew_vi_factor factor;
    ew_vi zero, low, high;
} ew_simd_rounding;

EW_INLINE int32_t ew_simd_kind(const ew_simd_finish *finish, int32_t channel)
{
    (void)channel;
    return finish->multiplier ? EW_ENDING_AWAY : finish->exact ? EW_ENDING_EXACT : EW_ENDING_REAL;
}

EW_INLINE ew_simd_rounding ew_simd_round_once(const ew_simd_finish *finish, int32_t channel)
{
    ew_simd_rounding f;
    f.factor = ew_vi_prepare(ew_vi_load(finish->multiplier + channel), ew_vi_load(finish->shift + channel));
    f.zero = ew_vi_all(finish->zero);
    f.low = ew_vi_all(finish->low - finish->zero);
    f.high = ew_vi_all(finish->high - finish->zero);
    return f;
}

EW_INLINE ew_simd_rounding ew_simd_no_rounding(void)
{
    const ew_vi none = ew_vi_all(0);
    const ew_simd_rounding f = {ew_vi_prepare(none, none), none, none, none};
    return f;
}

EW_INLINE ew_vi ew_simd_rounded(const ew_simd_rounding *f, int32_t kind, ew_vi x)
{
    (void)kind;
    return ew_vi_add(ew_vi_clamp(ew_vi_multiply(x, &f->factor), f->low, f->high), f->zero);
}
#endif

EW_INLINE ew_vi ew_simd_exactly(ew_vi sum, const double *scale)
{
#if EW_LANES == 16
    const __m256i low = ew_simd_exactly_eight(_mm512_castsi512_si256(sum), scale);
    return _mm512_inserti64x4(
        _mm512_castsi256_si512(low), ew_simd_exactly_eight(_mm512_extracti64x4_epi64(sum, 1), scale + 8), 1);
#elif EW_LANES == 8
    return ew_simd_exactly_eight(sum, scale);
#else
    int32_t lanes[EW_LANES];
    ew_vi_store(lanes, sum);
    for (int32_t i = 0; i < EW_LANES; i++)
        lanes[i] = ew_round_away((double)lanes[i] * scale[i]);
    return ew_vi_load(lanes);
#endif
}

/* What finishing takes for one vector of channels, in registers: stores of bytes may change any memory, as the compiler sees
 * it. */
typedef struct {
    int32_t kind;
    ew_simd_rounding rounding;
    ew_vi_factor factor;
    ew_vf scale;
    const double *exact;
    ew_vi zero, low, high;
} ew_simd_ending;

EW_INLINE ew_simd_ending ew_simd_prepared(const ew_simd_finish *finish, int32_t channel)
{
    const ew_vi none = ew_vi_all(0);
    ew_simd_ending ending;
    ending.kind = ew_simd_kind(finish, channel);
    ending.rounding = ending.kind <= EW_ENDING_AWAY ? ew_simd_round_once(finish, channel) : ew_simd_no_rounding();
    ending.factor = ending.kind == EW_ENDING_FIXED
        ? ew_vi_prepare(ew_vi_load(finish->multiplier + channel), ew_vi_load(finish->shift + channel))
        : ew_vi_prepare(none, none);
    ending.scale = ending.kind == EW_ENDING_REAL ? ew_vf_load(finish->scale + channel) : ew_vf_all(0.0f);
    ending.exact = ending.kind == EW_ENDING_EXACT ? finish->exact + channel : NULL;
    ending.zero = ew_vi_all(finish->zero);
    ending.low = ew_vi_all(finish->low - finish->zero);
    ending.high = ew_vi_all(finish->high - finish->zero);
    return ending;
}

EW_INLINE ew_vi ew_simd_stored_as(const ew_simd_ending *ending, int32_t kind, ew_vi sum)
{
    if (kind <= EW_ENDING_AWAY)
        return ew_simd_rounded(&ending->rounding, kind, sum);
    if (kind == EW_ENDING_FIXED)
        sum = ew_vi_multiply(sum, &ending->factor);
    else if (kind == EW_ENDING_EXACT)
        sum = ew_simd_exactly(sum, ending->exact);
    else /* kept in range before rounding, so that it is an integer */
        sum = ew_vi_nearest(ew_vf_min(
            ew_vi_real(ending->high), ew_vf_max(ew_vi_real(ending->low), ew_vf_mul(ew_vi_real(sum), ending->scale))));
    return ew_vi_add(ew_vi_clamp(sum, ending->low, ending->high), ending->zero);
}

EW_INLINE ew_vi ew_simd_stored(const ew_simd_ending *ending, ew_vi sum)
{
    return ew_simd_stored_as(ending, ending->kind, sum);
}

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

#endif /* EW_SIMD_ENDING_H */
