/* A panel of sixteen channels at once, for processors with aarch64's dot products of bytes (EW_HAS_PANELS): sums by
 * element, and from sums to stored bytes. */
#ifndef EW_SIMD_PANEL_H
#define EW_SIMD_PANEL_H

#include "simd_int.h"

#if defined(__aarch64__) && defined(__ARM_NEON) && defined(__ARM_FEATURE_DOTPROD)
#define EW_HAS_PANELS 1

/* How a panel's sums are finished: an ew_simd_finish in registers. */
typedef struct {
    const int32_t *multiplier, *shift; /* from the panel's first channel on, as the rest */
    const double *exact;
    const float *scale;
    int32_t has_left; /* some sums are shifted to the left */
    int32_t has_ties; /* negative halves matter: those that become the least value anyway may be rounded either way */
    int16x8_t zero, low, high;
} ew_panel_ending;

EW_INLINE ew_panel_ending ew_panel_prepared(const ew_simd_finish *finish, int32_t channel)
{
    ew_panel_ending ending;
    ending.multiplier = finish->multiplier ? finish->multiplier + channel : NULL;
    ending.shift = finish->shift ? finish->shift + channel : NULL;
    ending.exact = finish->exact ? finish->exact + channel : NULL;
    ending.scale = finish->scale ? finish->scale + channel : NULL;
    ending.has_left = 0;
    for (int32_t i = 0; i < EW_PANEL && ending.shift; i++)
        ending.has_left |= ending.shift[i] > 0;
    ending.has_ties = finish->low < finish->zero;
    ending.zero = vdupq_n_s16((int16_t)finish->zero);
    ending.low = vdupq_n_s16((int16_t)finish->low);
    ending.high = vdupq_n_s16((int16_t)finish->high);
    return ending;
}

/* ew_round_away of two products; what is cut to 2^30 there is cut to 2^31 here, and no byte either way. */
EW_INLINE int32x2_t ew_panel_exactly(int32x2_t sum, const double *scale)
{
    const float64x2_t v = vmulq_f64(vcvtq_f64_s64(vmovl_s32(sum)), vld1q_f64(scale));
    const float64x2_t half = vbslq_f64(vdupq_n_u64((uint64_t)1 << 63), v, vdupq_n_f64(0.5));
    return vqmovn_s64(vcvtq_s64_f64(vaddq_f64(v, half)));
}

/* Four sums from channel i of the panel on, in steps of the output's scale. */
EW_INLINE int32x4_t ew_panel_steps(const ew_panel_ending *ending, int32_t i, int32x4_t sum, int32_t has_left, int32_t has_ties)
{
    if (ending->multiplier) {
        const int32x4_t shift = vld1q_s32(ending->shift + i), right = has_left ? vminq_s32(shift, vdupq_n_s32(0)) : shift;
        if (has_left)
            sum = vshlq_s32(sum, vmaxq_s32(shift, vdupq_n_s32(0)));
        sum = vqrdmulhq_s32(sum, vld1q_s32(ending->multiplier + i));
        if (has_ties) /* vrshl rounds half up; one less for negative numbers makes that half away from zero */
            sum = vsraq_n_s32(sum, vandq_s32(sum, right), 31);
        return vrshlq_s32(sum, right);
    }
    if (ending->exact)
        return vcombine_s32(
            ew_panel_exactly(vget_low_s32(sum), ending->exact + i), ew_panel_exactly(vget_high_s32(sum), ending->exact + i + 2));
    return vcvtnq_s32_f32(vmulq_f32(vcvtq_f32_s32(sum), vld1q_f32(ending->scale + i)));
}

EW_INLINE int16x8_t ew_panel_placed(const ew_panel_ending *ending, int32x4_t a, int32x4_t b)
{
    const int16x8_t steps = vqmovn_high_s32(vqmovn_s32(a), b);
    return vminq_s16(vmaxq_s16(vqaddq_s16(steps, ending->zero), ending->low), ending->high);
}

/* The first n of a panel's bytes, 1..16. */
EW_INLINE void ew_panel_put(uint8_t *y, uint8x16_t bytes, int32_t n)
{
    if (n >= 16) {
        vst1q_u8(y, bytes);
    } else {
        if (n & 8) {
            vst1_u8(y, vget_low_u8(bytes));
            bytes = vextq_u8(bytes, bytes, 8);
            y += 8;
        }
        for (int32_t i = 0; i < (n & 7); i++, bytes = vextq_u8(bytes, bytes, 1))
            vst1q_lane_u8(y + i, bytes, 0);
    }
}

/* Finishes `rows` of sums, four vectors each (or two, where n <= 8), and puts their first n bytes to y[0], y[1], ... */
EW_INLINE void ew_panel_finish_as(
    const ew_panel_ending *ending, const int32_t (*sums)[EW_PANEL], int32_t rows, uint8_t *const *y, int32_t column,
    int32_t n, int32_t has_left, int32_t has_ties)
{
    for (int32_t r = 0; r < rows; r++) {
        const int32_t *const sum = sums[r];
        const int16x8_t low = ew_panel_placed(
            ending, ew_panel_steps(ending, 0, vld1q_s32(sum), has_left, has_ties),
            ew_panel_steps(ending, 4, vld1q_s32(sum + 4), has_left, has_ties));
        int16x8_t high = low;
        if (n > 8)
            high = ew_panel_placed(
                ending, ew_panel_steps(ending, 8, vld1q_s32(sum + 8), has_left, has_ties),
                ew_panel_steps(ending, 12, vld1q_s32(sum + 12), has_left, has_ties));
        ew_panel_put(
            y[r] + column, vuzp1q_u8(vreinterpretq_u8_s16(low), vreinterpretq_u8_s16(high)), n);
    }
}

static inline void ew_panel_finish(
    const ew_panel_ending *ending, const int32_t (*sums)[EW_PANEL], int32_t rows, uint8_t *const *y, int32_t column, int32_t n)
{
    if (ending->has_left)
        ew_panel_finish_as(ending, sums, rows, y, column, n, 1, 1);
    else if (ending->has_ties)
        ew_panel_finish_as(ending, sums, rows, y, column, n, 0, 1);
    else
        ew_panel_finish_as(ending, sums, rows, y, column, n, 0, 0);
}

#else
#define EW_HAS_PANELS 0
#endif

#endif /* EW_SIMD_PANEL_H */
