/* Rows of bytes, as dot products take them; and sixteen channels at once on aarch64 (EW_HAS_PANELS): from sums to stored
 * bytes. */
#ifndef EW_SIMD_PANEL_H
#define EW_SIMD_PANEL_H

#include "simd_dot.h"
#include "simd_ending.h"

/* Sixteen bytes in a register: two of eight would be stored one by one, and wait for each other when they are read. */
#if defined(__GNUC__)
typedef uint8_t ew_sixteen __attribute__((vector_size(16)));
typedef ew_sixteen ew_sixteen_anywhere __attribute__((aligned(1), may_alias));
EW_INLINE ew_sixteen ew_sixteen_load(const void *p) { return *(const ew_sixteen_anywhere *)p; }
EW_INLINE void ew_sixteen_store(void *p, ew_sixteen a) { *(ew_sixteen_anywhere *)p = a; }
EW_INLINE ew_sixteen ew_sixteen_flipped(ew_sixteen a, uint8_t flip) { return a ^ flip; }
#else
typedef struct {
    uint8_t byte[16];
} ew_sixteen;
EW_INLINE ew_sixteen ew_sixteen_flipped(ew_sixteen a, uint8_t flip)
{
    for (int32_t i = 0; i < 16; i++)
        a.byte[i] ^= flip;
    return a;
}
EW_INLINE ew_sixteen ew_sixteen_load(const void *p) { return *(const ew_sixteen *)p; }
EW_INLINE void ew_sixteen_store(void *p, ew_sixteen a) { *(ew_sixteen *)p = a; }
#endif

/* n bytes, each with `flip` applied. */
EW_INLINE void ew_panel_copy(uint8_t *to, const uint8_t *from, int32_t n, uint8_t flip)
{
    int32_t i = 0;
    for (; i + 16 <= n; i += 16)
        ew_sixteen_store(to + i, ew_sixteen_flipped(ew_sixteen_load(from + i), flip));
    for (; i < n; i++)
        to[i] = from[i] ^ flip;
}

/* Columns of row i of an image, the first of them `side`, side by side as dot products take them, with `zero` around the image. */
static inline void ew_panel_line(
    const ew_image *in, int32_t height, int32_t width, int32_t depth, const uint8_t *x, int32_t i, int32_t side,
    int32_t columns, int32_t is_signed, int32_t zero, uint8_t *to)
{
    const uint8_t flip = ew_dot_flip(is_signed);
    const int32_t first = ew_between(0, -side, columns), last = ew_between(first, width - side, columns);
    if (i < 0 || i >= height) {
        memset(to, (uint8_t)zero ^ flip, (size_t)(columns * depth));
        return;
    }
    memset(to, (uint8_t)zero ^ flip, (size_t)(first * depth));
    memset(to + last * depth, (uint8_t)zero ^ flip, (size_t)((columns - last) * depth));
    x += ew_row(in, i) + (side + first) * in->pixel;
    to += first * depth;
    if (in->pixel == depth)
        ew_panel_copy(to, x, (last - first) * depth, flip);
    else
        for (int32_t j = first; j < last; j++, x += in->pixel, to += depth)
            ew_panel_copy(to, x, depth, flip);
}

#if defined(__aarch64__) && defined(__ARM_NEON)
#define EW_HAS_PANELS 1

/* What finishing a panel's sums takes: TFLite's fixed-point numbers, shifted left or not, where ties of negative numbers
 * matter or become the least value anyway; one rounding of doubles; or one of floats. */
enum { EW_PANEL_NO_TIES, EW_PANEL_TIES, EW_PANEL_LEFT, EW_PANEL_EXACT, EW_PANEL_REAL };

/* An ew_simd_finish from the panel's first channel on. */
typedef struct {
    int32_t kind;
    const int32_t *multiplier, *shift;
    const double *exact;
    const float *scale;
    int16x8_t zero, low, high;
} ew_panel_ending;

/* The kind of a layer's endings: one for all of its channels. */
static inline int32_t ew_panel_kind(const ew_simd_finish *finish, int32_t channels)
{
    int32x4_t most = vdupq_n_s32(0);
    if (!finish->multiplier)
        return finish->exact ? EW_PANEL_EXACT : EW_PANEL_REAL;
    for (int32_t c = 0; c < channels; c += 4)
        most = vmaxq_s32(most, vld1q_s32(finish->shift + c));
    return vmaxvq_s32(most) > 0 ? EW_PANEL_LEFT : finish->low < finish->zero ? EW_PANEL_TIES : EW_PANEL_NO_TIES;
}

EW_INLINE ew_panel_ending ew_panel_prepared(const ew_simd_finish *finish, int32_t kind, int32_t channel)
{
    ew_panel_ending ending;
    ending.kind = kind;
    ending.multiplier = finish->multiplier ? finish->multiplier + channel : NULL;
    ending.shift = finish->shift ? finish->shift + channel : NULL;
    ending.exact = finish->exact ? finish->exact + channel : NULL;
    ending.scale = finish->scale ? finish->scale + channel : NULL;
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
EW_INLINE int32x4_t ew_panel_steps(const ew_panel_ending *ending, int32_t kind, int32_t i, int32x4_t sum)
{
    if (kind <= EW_PANEL_LEFT) {
        const int32x4_t none = vdupq_n_s32(0);
        int32x4_t right = vld1q_s32(ending->shift + i); /* negative: what NEON takes for a shift to the right */
        if (kind == EW_PANEL_LEFT) {
            sum = vshlq_s32(sum, vmaxq_s32(right, none));
            right = vminq_s32(right, none);
        }
        sum = vqrdmulhq_s32(sum, vld1q_s32(ending->multiplier + i));
        if (kind != EW_PANEL_NO_TIES) /* vrshl rounds half up; one less for negative numbers: half away from zero */
            sum = vsraq_n_s32(sum, vandq_s32(sum, right), 31);
        return vrshlq_s32(sum, right);
    }
    if (kind == EW_PANEL_EXACT)
        return vcombine_s32(
            ew_panel_exactly(vget_low_s32(sum), ending->exact + i),
            ew_panel_exactly(vget_high_s32(sum), ending->exact + i + 2));
    return vcvtnq_s32_f32(vmulq_f32(vcvtq_f32_s32(sum), vld1q_f32(ending->scale + i)));
}

EW_INLINE int16x8_t ew_panel_eight(const ew_panel_ending *ending, int32_t kind, int32_t i, int32x4_t a, int32x4_t b)
{
    const int16x4_t first = vqmovn_s32(ew_panel_steps(ending, kind, i, a));
    const int16x8_t steps = vqmovn_high_s32(first, ew_panel_steps(ending, kind, i + 4, b));
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

/* A panel's sums as bytes; those of half a panel are there twice. */
EW_INLINE uint8x16_t ew_panel_bytes(
    const ew_panel_ending *ending, int32_t kind, int32x4_t a, int32x4_t b, int32x4_t c, int32x4_t d)
{
    const int16x8_t low = ew_panel_eight(ending, kind, 0, a, b), high = ew_panel_eight(ending, kind, 8, c, d);
    return vuzp1q_u8(vreinterpretq_u8_s16(low), vreinterpretq_u8_s16(high));
}

EW_INLINE uint8x16_t ew_panel_half(const ew_panel_ending *ending, int32_t kind, int32x4_t a, int32x4_t b)
{
    const uint8x16_t low = vreinterpretq_u8_s16(ew_panel_eight(ending, kind, 0, a, b));
    return vuzp1q_u8(low, low);
}
#else
#define EW_HAS_PANELS 0
#endif

#endif /* EW_SIMD_PANEL_H */
