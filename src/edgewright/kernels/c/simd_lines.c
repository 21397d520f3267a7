#include "simd_lines.h"
#include "simd_panel.h"

EW_INLINE ew_vf ew_simd_operand(const float *x, int32_t step, int32_t i, int32_t n)
{
    if (!step)
        return ew_vf_all(*x);
    return n == EW_LANES ? ew_vf_load(x + i) : ew_vf_load_some(x + i, n);
}

EW_INLINE void ew_simd_map_some(
    const ew_simd_map *map, int32_t what, int32_t kind, const float *x0, const float *x1, const float *x2, float *y,
    int32_t i, int32_t n)
{
    ew_vf v = ew_simd_operand(x0, map->steps[0], i, n);
    if (what == EW_SIMD_ADD)
        v = ew_vf_add(v, ew_simd_operand(x1, map->steps[1], i, n));
    if (what == EW_SIMD_SUB)
        v = ew_vf_sub(v, ew_simd_operand(x1, map->steps[1], i, n));
    if (what == EW_SIMD_MUL)
        v = ew_vf_mul(v, ew_simd_operand(x1, map->steps[1], i, n));
    if (what == EW_SIMD_DIV)
        v = ew_vf_div(v, ew_simd_operand(x1, map->steps[1], i, n));
    if (what == EW_SIMD_SCALE)
        v = ew_vf_add(ew_vf_mul(v, ew_simd_operand(x1, map->steps[1], i, n)), ew_simd_operand(x2, map->steps[2], i, n));
    if (kind == EW_SIMD_CLAMP)
        v = ew_vf_clamp(v, ew_vf_all(map->a), ew_vf_all(map->b));
    if (n == EW_LANES)
        ew_vf_store(y + i, v);
    else
        ew_vf_store_some(y + i, v, n);
}

/* One loop for each operation, with or without a clamp. */
EW_INLINE void ew_simd_map_as(
    const ew_simd_map *map, int32_t what, int32_t kind, const float *x0, const float *x1, const float *x2, float *y,
    int32_t n)
{
    const int32_t rest = n % EW_LANES;
    if (map->is_backward) {
        if (rest)
            ew_simd_map_some(map, what, kind, x0, x1, x2, y, n - rest, rest);
        for (int32_t i = n - rest - EW_LANES; i >= 0; i -= EW_LANES)
            ew_simd_map_some(map, what, kind, x0, x1, x2, y, i, EW_LANES);
    } else {
        for (int32_t i = 0; i + EW_LANES <= n; i += EW_LANES)
            ew_simd_map_some(map, what, kind, x0, x1, x2, y, i, EW_LANES);
        if (rest)
            ew_simd_map_some(map, what, kind, x0, x1, x2, y, n - rest, rest);
    }
}

EW_INLINE void ew_simd_map_piece(
    const ew_simd_map *map, int32_t kind, const float *x0, const float *x1, const float *x2, float *y, int32_t n)
{
    switch (map->what) {
    case EW_SIMD_ADD:
        ew_simd_map_as(map, EW_SIMD_ADD, kind, x0, x1, x2, y, n);
        break;
    case EW_SIMD_SUB:
        ew_simd_map_as(map, EW_SIMD_SUB, kind, x0, x1, x2, y, n);
        break;
    case EW_SIMD_MUL:
        ew_simd_map_as(map, EW_SIMD_MUL, kind, x0, x1, x2, y, n);
        break;
    case EW_SIMD_DIV:
        ew_simd_map_as(map, EW_SIMD_DIV, kind, x0, x1, x2, y, n);
        break;
    case EW_SIMD_SCALE:
        ew_simd_map_as(map, EW_SIMD_SCALE, kind, x0, x1, x2, y, n);
        break;
    default:
        ew_simd_map_as(map, EW_SIMD_ONE, kind, x0, x1, x2, y, n);
        break;
    }
}

#define EW_SIMD_PIECE 1024 /* elements that wait in the nearest cache for their activation */

void ew_simd_map_run(const ew_simd_map *map, const float *x0, const float *x1, const float *x2, float *y, int32_t n)
{
    for (int32_t done = 0; done < n; done += EW_SIMD_PIECE) {
        const int32_t some = ew_min(EW_SIMD_PIECE, n - done), first = map->is_backward ? n - done - some : done;
        const float *const p0 = x0 + first * map->steps[0];
        const float *const p1 = x1 ? x1 + first * map->steps[1] : NULL;
        const float *const p2 = x2 ? x2 + first * map->steps[2] : NULL;
        if (map->kind == EW_SIMD_CLAMP) {
            ew_simd_map_piece(map, EW_SIMD_CLAMP, p0, p1, p2, y + first, some);
        } else {
            ew_simd_map_piece(map, EW_SIMD_AS_IS, p0, p1, p2, y + first, some);
            ew_simd_activate(y + first, some, map->kind, map->a, map->b);
        }
    }
}

EW_INLINE ew_vi ew_simd_rescaled(
    const ew_simd_add8 *add, int32_t which, const ew_vi_factor *factor, const uint8_t *x, int32_t n)
{
    const uint8_t flip = add->is_signed[which] ? 0x80 : 0;
    return ew_vi_multiply(
        ew_vi_left(ew_vi_sub(ew_simd_get(x, n, flip), ew_vi_all(add->zero[which] + (flip ? 128 : 0)))), factor);
}

EW_INLINE void ew_simd_add8_some(
    const ew_simd_add8 *add, const ew_vi_factor *factors, const uint8_t *a, const uint8_t *b, uint8_t *y, int32_t n)
{
    const ew_vi zero = ew_vi_all(add->out_zero);
    const ew_vi low = ew_vi_all(add->low - add->out_zero), high = ew_vi_all(add->high - add->out_zero);
    const ew_vi left = ew_simd_rescaled(add, 0, factors, a, n), right = ew_simd_rescaled(add, 1, factors + 1, b, n);
    const ew_vi sum = add->sign > 0 ? ew_vi_add(left, right) : ew_vi_sub(left, right);
    ew_simd_put(y, ew_vi_add(ew_vi_clamp(ew_vi_multiply(sum, factors + 2), low, high), zero), n);
}

#if EW_HAS_PANELS
/* Eight bytes less their zero point, times 16. */
EW_INLINE int16x8_t ew_simd_sixteenfold(uint8x8_t x, int32_t is_signed, int16x8_t zero)
{
    const int16x8_t wide = is_signed ? vmovl_s8(vreinterpret_s8_u8(x)) : vreinterpretq_s16_u16(vmovl_u8(x));
    return vshlq_n_s16(vsubq_s16(wide, zero), 4);
}

/* ew_multiply of what was shifted by 20 bits: four numbers, sixteenfold already. No shift goes to the left. */
EW_INLINE int32x4_t ew_simd_rescaled_four(int16x4_t x, const ew_vi_factor *factor, int32_t is_shifted)
{
    const int32x4_t v = vqrdmulhq_s32(vshll_n_s16(x, 16), factor->multiplier);
    return is_shifted ? vrshlq_s32(vsraq_n_s32(v, vandq_s32(v, factor->right), 31), factor->right) : v;
}

/* Sixteen sums; shifts of operands that are none are left out. */
EW_INLINE void ew_simd_add8_sixteen(
    const ew_simd_add8 *add, const ew_vi_factor *factors, const uint8_t *a, const uint8_t *b, uint8_t *y, int32_t is_shifted_a,
    int32_t is_shifted_b)
{
    const int16x8_t zero_a = vdupq_n_s16((int16_t)add->zero[0]), zero_b = vdupq_n_s16((int16_t)add->zero[1]);
    const int16x8_t zero = vdupq_n_s16((int16_t)add->out_zero);
    const int16x8_t low = vdupq_n_s16((int16_t)add->low), high = vdupq_n_s16((int16_t)add->high);
    int16x8_t found[2];
    for (int32_t i = 0; i < 2; i++) {
        const int16x8_t p = ew_simd_sixteenfold(vld1_u8(a + 8 * i), add->is_signed[0], zero_a);
        const int16x8_t q = ew_simd_sixteenfold(vld1_u8(b + 8 * i), add->is_signed[1], zero_b);
        const int32x4_t p0 = ew_simd_rescaled_four(vget_low_s16(p), factors, is_shifted_a);
        const int32x4_t p1 = ew_simd_rescaled_four(vget_high_s16(p), factors, is_shifted_a);
        const int32x4_t q0 = ew_simd_rescaled_four(vget_low_s16(q), factors + 1, is_shifted_b);
        const int32x4_t q1 = ew_simd_rescaled_four(vget_high_s16(q), factors + 1, is_shifted_b);
        const int32x4_t s0 = ew_vi_multiply(add->sign > 0 ? vaddq_s32(p0, q0) : vsubq_s32(p0, q0), factors + 2);
        const int32x4_t s1 = ew_vi_multiply(add->sign > 0 ? vaddq_s32(p1, q1) : vsubq_s32(p1, q1), factors + 2);
        found[i] = vqaddq_s16(vqmovn_high_s32(vqmovn_s32(s0), s1), zero);
        found[i] = vminq_s16(vmaxq_s16(found[i], low), high);
    }
    vst1q_u8(y, vuzp1q_u8(vreinterpretq_u8_s16(found[0]), vreinterpretq_u8_s16(found[1])));
}

static void ew_simd_add8_sixteens(
    const ew_simd_add8 *given, const ew_vi_factor *factors, const uint8_t *a, const uint8_t *b, uint8_t *y, int32_t n)
{
    const ew_simd_add8 add = *given;
    const ew_vi_factor copies[3] = {factors[0], factors[1], factors[2]};
    for (int32_t done = 0; done < n; done += 16) {
        const int32_t i = add.is_backward ? n - 16 - done : done;
        if (!add.shift[0])
            ew_simd_add8_sixteen(&add, copies, a + i, b + i, y + i, 0, 1);
        else if (!add.shift[1])
            ew_simd_add8_sixteen(&add, copies, a + i, b + i, y + i, 1, 0);
        else
            ew_simd_add8_sixteen(&add, copies, a + i, b + i, y + i, 1, 1);
    }
}
#endif

void ew_simd_add8_run(const ew_simd_add8 *add, const void *a, const void *b, void *y, int32_t n)
{
    const uint8_t *const p = (const uint8_t *)a, *const q = (const uint8_t *)b;
    uint8_t *const r = (uint8_t *)y;
    const int32_t rest = n % EW_LANES, even = n - rest;
    int32_t most = 0; /* that were added many at once */
    ew_vi_factor factors[3];
    for (int32_t i = 0; i < 2; i++)
        factors[i] = ew_vi_prepare(ew_vi_all(add->multiplier[i]), ew_vi_all(add->shift[i]));
    factors[2] = ew_vi_prepare(ew_vi_all(add->out_multiplier), ew_vi_all(add->out_shift));
#if EW_HAS_PANELS
    most = add->shift[0] <= 0 && add->shift[1] <= 0 ? n / 16 * 16 : 0;
#endif
    if (add->is_backward && rest)
        ew_simd_add8_some(add, factors, p + even, q + even, r + even, rest);
#if EW_HAS_PANELS
    if (!add->is_backward)
        ew_simd_add8_sixteens(add, factors, p, q, r, most);
#endif
    for (int32_t done = most; done < even; done += EW_LANES) {
        const int32_t i = add->is_backward ? even - EW_LANES - (done - most) : done;
        ew_simd_add8_some(add, factors, p + i, q + i, r + i, EW_LANES);
    }
#if EW_HAS_PANELS
    if (add->is_backward)
        ew_simd_add8_sixteens(add, factors, p, q, r, most);
#endif
    if (!add->is_backward && rest)
        ew_simd_add8_some(add, factors, p + even, q + even, r + even, rest);
}

void ew_simd_mean(const float *x, ew_image in, int32_t height, int32_t width, int32_t channels, float scale, float *y)
{
    for (int32_t c = 0; c < channels; c += EW_LANES) {
        const int32_t n = ew_min(EW_LANES, channels - c);
        ew_vf total = ew_vf_all(0.0f);
        for (int32_t i = 0; i < height; i++) { /* row by row: many small sums lose fewer digits than a long one */
            const float *at = x + ew_row(&in, i) + c;
            ew_vf sum = ew_vf_all(0.0f);
            for (int32_t j = 0; j < width; j++, at += in.pixel)
                sum = ew_vf_add(sum, n == EW_LANES ? ew_vf_load(at) : ew_vf_load_some(at, n));
            total = ew_vf_add(total, sum);
        }
        ew_vf_store_some(y + c, ew_vf_mul(total, ew_vf_all(scale)), n);
    }
}
