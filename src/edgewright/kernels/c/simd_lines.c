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
/* ew_multiply of every lane, where no shift goes to the left; without `has_ties`, negative halves are rounded up. */
EW_INLINE int32x4_t ew_simd_scaled(int32x4_t x, const ew_vi_factor *factor, int32_t has_ties)
{
    x = vqrdmulhq_s32(x, factor->multiplier);
    return vrshlq_s32(has_ties ? vsraq_n_s32(x, vandq_s32(x, factor->right), 31) : x, factor->right);
}

/* Four sums of numbers that were multiplied by 2^20; the first as they are added already, where `is_ready`. */
EW_INLINE int32x4_t ew_simd_sum_four(
    int16x8_t a, int16x8_t b, const ew_vi_factor *factors, int32_t is_ready, int32_t has_ties)
{
    const int32x4_t p = vreinterpretq_s32_s16(a), q = ew_simd_scaled(vreinterpretq_s32_s16(b), factors + 1, 1);
    return ew_simd_scaled(vaddq_s32(is_ready ? p : ew_simd_scaled(p, factors, 1), q), factors + 2, has_ties);
}

/* Eight sums, of bytes and their zero points. A number in the upper half of 32 bits was multiplied by 2^16. */
EW_INLINE int16x8_t ew_simd_sum_eight(
    int8x8_t a, int8x8_t b, int8x8_t zero_a, int8x8_t zero_b, const ew_vi_factor *factors, int32_t is_ready, int32_t has_ties)
{
    const int16x8_t none = vdupq_n_s16(0), wide = vsubl_s8(a, zero_a);
    const int16x8_t p = is_ready ? vshlq_n_s16(wide, 3) : vshlq_n_s16(wide, 4), q = vshlq_n_s16(vsubl_s8(b, zero_b), 4);
    const int32x4_t low = ew_simd_sum_four(vzip1q_s16(none, p), vzip1q_s16(none, q), factors, is_ready, has_ties);
    const int32x4_t high = ew_simd_sum_four(vzip2q_s16(none, p), vzip2q_s16(none, q), factors, is_ready, has_ties);
    return vqmovn_high_s32(vqmovn_s32(low), high);
}

/* Sixteen sums at a time; n is a multiple of 16. */
EW_INLINE void ew_simd_add8_as(
    const ew_simd_add8 *add, const ew_vi_factor *given, const uint8_t *a, const uint8_t *b, uint8_t *y, int32_t n,
    int32_t is_ready, int32_t has_ties)
{
    const ew_vi_factor factors[3] = {given[0], given[1], given[2]};
    const uint8_t flip = add->is_signed[0] ? 0 : 0x80; /* both are signed, or none */
    const uint8x16_t flips = vdupq_n_u8(flip);
    const int8x8_t zero_a = vdup_n_s8((int8_t)((uint8_t)add->zero[0] ^ flip));
    const int8x8_t zero_b = vdup_n_s8((int8_t)((uint8_t)add->zero[1] ^ flip));
    const int16x8_t zero = vdupq_n_s16((int16_t)add->out_zero);
    const int16x8_t low = vdupq_n_s16((int16_t)add->low), high = vdupq_n_s16((int16_t)add->high);
    const int32_t step = add->is_backward ? -16 : 16;
    for (int32_t done = 0, i = add->is_backward ? n - 16 : 0; done < n; done += 16, i += step) {
        const int8x16_t p = vreinterpretq_s8_u8(veorq_u8(vld1q_u8(a + i), flips));
        const int8x16_t q = vreinterpretq_s8_u8(veorq_u8(vld1q_u8(b + i), flips));
        const int16x8_t left = vqaddq_s16(
            ew_simd_sum_eight(vget_low_s8(p), vget_low_s8(q), zero_a, zero_b, factors, is_ready, has_ties), zero);
        const int16x8_t right = vqaddq_s16(
            ew_simd_sum_eight(vget_high_s8(p), vget_high_s8(q), zero_a, zero_b, factors, is_ready, has_ties), zero);
        const uint8x16_t bytes = vuzp1q_u8(
            vreinterpretq_u8_s16(vminq_s16(vmaxq_s16(left, low), high)),
            vreinterpretq_u8_s16(vminq_s16(vmaxq_s16(right, low), high)));
        vst1q_u8(y + i, bytes);
    }
}

/* Whether sums are formed as above: nothing is shifted to the left, or subtracted. */
static int32_t ew_simd_adds_sixteen(const ew_simd_add8 *add)
{
    const int32_t is_right = add->shift[0] <= 0 && add->shift[1] <= 0 && add->out_shift <= 0;
    return is_right && add->sign > 0 && add->is_signed[0] == add->is_signed[1];
}

static void ew_simd_add8_sixteens(
    const ew_simd_add8 *add, const ew_vi_factor *factors, const uint8_t *a, const uint8_t *b, uint8_t *y, int32_t n)
{
    const int32_t half = 1 << 30; /* the multiplier of the operand with the larger scale, which becomes the first */
    const int32_t is_turned = add->multiplier[0] != half || add->shift[0];
    const uint8_t *const p = is_turned ? b : a, *const q = is_turned ? a : b;
    const ew_vi_factor turned[3] = {factors[is_turned], factors[1 - is_turned], factors[2]};
    ew_simd_add8 as = *add;
    as.zero[0] = add->zero[is_turned];
    as.zero[1] = add->zero[1 - is_turned];
    if (add->multiplier[is_turned] != half || add->shift[is_turned])
        ew_simd_add8_as(&as, turned, p, q, y, n, 0, 1);
    else if (add->low < add->out_zero)
        ew_simd_add8_as(&as, turned, p, q, y, n, 1, 1);
    else
        ew_simd_add8_as(&as, turned, p, q, y, n, 1, 0);
}
#endif

/* Elements from `first` on, a vector at a time. */
static void ew_simd_add8_vectors(
    const ew_simd_add8 *add, const ew_vi_factor *factors, const uint8_t *a, const uint8_t *b, uint8_t *y, int32_t first,
    int32_t n)
{
    const int32_t rest = (n - first) % EW_LANES, even = n - rest;
    if (add->is_backward && rest)
        ew_simd_add8_some(add, factors, a + even, b + even, y + even, rest);
    for (int32_t done = 0; done < even - first; done += EW_LANES) {
        const int32_t i = add->is_backward ? even - EW_LANES - done : first + done;
        ew_simd_add8_some(add, factors, a + i, b + i, y + i, EW_LANES);
    }
    if (!add->is_backward && rest)
        ew_simd_add8_some(add, factors, a + even, b + even, y + even, rest);
}

void ew_simd_add8_run(const ew_simd_add8 *add, const void *a, const void *b, void *y, int32_t n)
{
    const uint8_t *const p = (const uint8_t *)a, *const q = (const uint8_t *)b;
    uint8_t *const r = (uint8_t *)y;
    ew_vi_factor factors[3];
    for (int32_t i = 0; i < 2; i++)
        factors[i] = ew_vi_prepare(ew_vi_all(add->multiplier[i]), ew_vi_all(add->shift[i]));
    factors[2] = ew_vi_prepare(ew_vi_all(add->out_multiplier), ew_vi_all(add->out_shift));
#if EW_HAS_PANELS
    if (ew_simd_adds_sixteen(add)) {
        const int32_t most = n / 16 * 16;
        if (!add->is_backward)
            ew_simd_add8_sixteens(add, factors, p, q, r, most);
        ew_simd_add8_vectors(add, factors, p, q, r, most, n);
        if (add->is_backward)
            ew_simd_add8_sixteens(add, factors, p, q, r, most);
        return;
    }
#endif
    ew_simd_add8_vectors(add, factors, p, q, r, 0, n);
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
