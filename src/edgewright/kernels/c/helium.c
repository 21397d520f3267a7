#include "helium.h"

/* Sums of the products of x with four rows of weights; rows that do not exist repeat the last. */
EW_OFTEN_RUN EW_APART static void ew_helium_rows(const int8_t *x, const int8_t *w, int32_t depth, int32_t pitch,
                                                 int32_t count, int32_t *sums)
{
    const int8_t *w0 = w, *w1 = w0 + (count > 1 ? pitch : 0), *w2 = w1 + (count > 2 ? pitch : 0);
    const int8_t *w3 = w2 + (count > 3 ? pitch : 0);
    int32_t a = 0, b = 0, c = 0, d = 0;
#if EW_HAS_MVE
    for (int32_t n = depth >> 4; n > 0; n--) {
        const int8x16_t v = vldrbq_s8(x);
        a = vmladavaq_s8(a, v, vldrbq_s8(w0));
        b = vmladavaq_s8(b, v, vldrbq_s8(w1));
        c = vmladavaq_s8(c, v, vldrbq_s8(w2));
        d = vmladavaq_s8(d, v, vldrbq_s8(w3));
        x += 16, w0 += 16, w1 += 16, w2 += 16, w3 += 16;
    }
    if (depth & 15) {
        const mve_pred16_t lanes = vctp8q((uint32_t)(depth & 15));
        const int8x16_t v = vldrbq_z_s8(x, lanes);
        a = vmladavaq_s8(a, v, vldrbq_z_s8(w0, lanes));
        b = vmladavaq_s8(b, v, vldrbq_z_s8(w1, lanes));
        c = vmladavaq_s8(c, v, vldrbq_z_s8(w2, lanes));
        d = vmladavaq_s8(d, v, vldrbq_z_s8(w3, lanes));
    }
#else
    for (int32_t k = 0; k < depth; k++) {
        a += x[k] * w0[k];
        b += x[k] * w1[k];
        c += x[k] * w2[k];
        d += x[k] * w3[k];
    }
#endif
    sums[0] = a;
    sums[1] = b;
    sums[2] = c;
    sums[3] = d;
}

#if defined(EW_HAS_WIDE) || defined(EW_HAS_EVEN)
/* The same from sums that narrow offsets do not store exactly. */
static void ew_helium_store_exact(const ew_products *p, int32_t channel, int32_t count, const int32_t *sums, uint8_t *y)
{
#if EW_HAS_MVE && (__ARM_FEATURE_MVE & 2)
    if (EW_IS_EVEN(*p)) {
        const mve_pred16_t lanes = vctp32q((uint32_t)count);
        const float32x4_t scales = vreinterpretq_f32_s32(vldrwq_z_s32(p->drop + channel, lanes));
        const int32x4_t steps = vcvtnq_s32_f32(vmulq_f32(vcvtq_f32_s32(vldrwq_s32(sums)), scales));
        const int32x4_t least = vmaxq_s32(vqaddq_n_s32(steps, p->offset[3]), vdupq_n_s32(p->low));
        vstrbq_p_s32((int8_t *)y + channel, vminq_s32(least, vdupq_n_s32(p->high)), lanes);
        return;
    }
#endif
    ew_portable_store(p, channel, count, sums, y);
}
#endif

EW_OFTEN_RUN void ew_helium_pixel(const ew_products *products, const int8_t *x, uint8_t *y)
{
    const ew_products p = *products; /* a copy, which stores cannot change */
    const int8_t *w = p.weights;
    for (int32_t channel = 0; channel < p.channels; channel += 4, w += 4 * EW_PRODUCTS_PITCH(&p)) {
        const int32_t count = ew_min(p.channels - channel, 4);
        int32_t sums[4];
        ew_helium_rows(x, w, p.depth, EW_PRODUCTS_PITCH(&p), count, sums);
        for (int32_t i = 0; p.bias && i < count; i++)
            sums[i] += p.bias[channel + i];
#if defined(EW_HAS_WIDE) || defined(EW_HAS_EVEN)
        if (EW_IS_EXACT(p)) {
            ew_helium_store_exact(&p, channel, count, sums, y);
            continue;
        }
#endif
        if (count == 4)
            ew_quad_store(&p, channel, ew_quad_load(sums, 4), 4, y);
        else
            ew_quad_store(&p, channel, ew_quad_load(sums, 4), count, y);
    }
}
