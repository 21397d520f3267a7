/* Four 32-bit sums at a time, sixteen 8-bit products to an instruction: M-profile vectors (Cortex-M55), or the same in
 * plain C, so that the code runs everywhere with the same results. */
#ifndef EW_HELIUM_H
#define EW_HELIUM_H

#include "products.h"

#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 1)
#include <arm_mve.h>
#define EW_HAS_MVE 1
typedef int32x4_t ew_quad;
#else
#define EW_HAS_MVE 0
typedef struct {
    int32_t lane[4];
} ew_quad;
#endif

#if EW_HAS_MVE

EW_INLINE void ew_helium_copy(const uint8_t *x, int32_t size, uint8_t flip, int8_t *to)
{
    for (; size > 0; size -= 16, x += 16, to += 16) {
        const mve_pred16_t lanes = vctp8q((uint32_t)size);
        const uint8x16_t bytes = veorq_u8(vldrbq_z_u8(x, lanes), vdupq_n_u8(flip));
        vstrbq_p_s8(to, vreinterpretq_s8_u8(bytes), lanes);
    }
}

EW_INLINE void ew_helium_fill(int8_t value, int32_t size, int8_t *to)
{
    for (; size > 0; size -= 16, to += 16)
        vstrbq_p_s8(to, vdupq_n_s8(value), vctp8q((uint32_t)size));
}

/* Four int32 of which `count` exist; a constant 4 needs no predicate. */
EW_INLINE ew_quad ew_quad_load(const int32_t *from, int32_t count)
{
    return count == 4 ? vldrwq_s32(from) : vldrwq_z_s32(from, vctp32q((uint32_t)count));
}

/* Four int8 of which `count` exist. */
EW_INLINE ew_quad ew_quad_bytes(const int8_t *from, int32_t count)
{
    return count == 4 ? vldrbq_s32(from) : vldrbq_z_s32(from, vctp32q((uint32_t)count));
}

EW_INLINE ew_quad ew_quad_zero(void) { return vdupq_n_s32(0); }

/* sums + x * w, lane by lane. */
EW_INLINE ew_quad ew_quad_lanes(ew_quad sums, const int8_t *x, const int8_t *w, int32_t count)
{
    return vaddq_s32(sums, vmulq_s32(ew_quad_bytes(x, count), ew_quad_bytes(w, count)));
}

/* sums + x * w, where x is the same for all lanes. */
EW_INLINE ew_quad ew_quad_scaled(ew_quad sums, int32_t x, const int8_t *w, int32_t count)
{
    return vmlaq_n_s32(sums, ew_quad_bytes(w, count), x);
}

/* Stores `count` channels from `channel` on. */
EW_INLINE void ew_quad_store(const ew_products *p, int32_t channel, ew_quad sums, int32_t count, uint8_t *y)
{
    int32x4_t steps = vmulhq_s32(vshlq_r_s32(sums, p->left), ew_quad_load(p->multiplier + channel, count));
    steps = vaddq_s32(steps, ew_quad_load(p->offset + channel, count));
    if (p->drop)
        steps = vsubq_m_s32(steps, steps, ew_quad_load(p->drop + channel, count), vcmpltq_n_s32(sums, 0));
    steps = vshlq_r_s32(steps, -(int32_t)p->shift);
    steps = vminq_s32(vmaxq_s32(steps, vdupq_n_s32(p->low)), vdupq_n_s32(p->high));
    if (count == 4)
        vstrbq_s32((int8_t *)y + channel, steps);
    else
        vstrbq_p_s32((int8_t *)y + channel, steps, vctp32q((uint32_t)count));
}

#else

EW_INLINE void ew_helium_copy(const uint8_t *x, int32_t size, uint8_t flip, int8_t *to)
{
    for (int32_t i = 0; i < size; i++)
        to[i] = (int8_t)(x[i] ^ flip);
}

EW_INLINE void ew_helium_fill(int8_t value, int32_t size, int8_t *to)
{
    for (int32_t i = 0; i < size; i++)
        to[i] = value;
}

EW_INLINE ew_quad ew_quad_zero(void)
{
    const ew_quad none = {{0, 0, 0, 0}};
    return none;
}

EW_INLINE ew_quad ew_quad_load(const int32_t *from, int32_t count)
{
    ew_quad sums = ew_quad_zero();
    for (int32_t i = 0; i < count; i++)
        sums.lane[i] = from[i];
    return sums;
}

EW_INLINE ew_quad ew_quad_lanes(ew_quad sums, const int8_t *x, const int8_t *w, int32_t count)
{
    for (int32_t i = 0; i < count; i++)
        sums.lane[i] += x[i] * w[i];
    return sums;
}

EW_INLINE ew_quad ew_quad_scaled(ew_quad sums, int32_t x, const int8_t *w, int32_t count)
{
    for (int32_t i = 0; i < count; i++)
        sums.lane[i] += x * w[i];
    return sums;
}

EW_INLINE void ew_quad_store(const ew_products *p, int32_t channel, ew_quad sums, int32_t count, uint8_t *y)
{
    for (int32_t i = 0; i < count; i++, channel++) {
        const int32_t drop = p->drop ? p->drop[channel] : 0;
        const int32_t steps =
            ew_fixed_signed(sums.lane[i], p->left, p->multiplier[channel], p->offset[channel], drop, p->shift);
        y[channel] = (uint8_t)ew_clamp(steps, p->low, p->high);
    }
}

#endif

/* The biases that four sums start from. */
EW_INLINE ew_quad ew_quad_bias(const ew_products *p, int32_t channel, int32_t count)
{
    return p->bias ? ew_quad_load(p->bias + channel, count) : ew_quad_zero();
}

/* All channels of one pixel whose column lies at x; weights: channel by channel. */
void ew_helium_pixel(const ew_products *products, const int8_t *x, uint8_t *y);

#endif /* EW_HELIUM_H */
