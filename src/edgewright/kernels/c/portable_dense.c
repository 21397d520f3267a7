#include "portable_dense.h"

#if EW_FEW_REGISTERS
EW_INLINE void ew_portable_1x16(const int8_t *x, const int8_t *w, int32_t depth, const int32_t *bias, int32_t *sums)
{
    for (int32_t i = 0; i < 16; i += 4)
        ew_portable_1x4(x, 1, w + i, 16, depth, bias + i, sums + i);
}
#else

#define EW_PORTABLE_QUARTER(i, a, b, c, d)                                                                          \
    EW_FENCE();                                                                                                     \
    s##a += v * w[i];                                                                                               \
    s##b += v * w[(i) + 1];                                                                                         \
    s##c += v * w[(i) + 2];                                                                                         \
    s##d += v * w[(i) + 3];
#define EW_PORTABLE_SIXTEEN(k)                                                                                      \
    EW_FENCE();                                                                                                     \
    v = x[k];                                                                                                       \
    EW_PORTABLE_QUARTER(16 * (k), 0, 1, 2, 3)                                                                       \
    EW_PORTABLE_QUARTER(16 * (k) + 4, 4, 5, 6, 7)                                                                   \
    EW_PORTABLE_QUARTER(16 * (k) + 8, 8, 9, 10, 11)                                                                 \
    EW_PORTABLE_QUARTER(16 * (k) + 12, 12, 13, 14, 15)

/* Sums of sixteen channels; w: weights [k][16]. */
EW_INLINE void ew_portable_1x16(const int8_t *x, const int8_t *w, int32_t depth, const int32_t *bias, int32_t *sums)
{
    int32_t s0 = bias[0], s1 = bias[1], s2 = bias[2], s3 = bias[3], s4 = bias[4], s5 = bias[5], s6 = bias[6];
    int32_t s7 = bias[7], s8 = bias[8], s9 = bias[9], s10 = bias[10], s11 = bias[11], s12 = bias[12], s13 = bias[13];
    int32_t s14 = bias[14], s15 = bias[15], v;
    const int8_t *end = x + (depth & ~3);
    for (; x != end; x += 4, w += 64) {
        EW_PORTABLE_SIXTEEN(0)
        EW_PORTABLE_SIXTEEN(1)
        EW_PORTABLE_SIXTEEN(2)
        EW_PORTABLE_SIXTEEN(3)
    }
    for (end = x + (depth & 3); x != end; x++, w += 16) {
        EW_PORTABLE_SIXTEEN(0)
    }
    sums[0] = s0, sums[1] = s1, sums[2] = s2, sums[3] = s3, sums[4] = s4, sums[5] = s5, sums[6] = s6, sums[7] = s7;
    sums[8] = s8, sums[9] = s9, sums[10] = s10, sums[11] = s11, sums[12] = s12, sums[13] = s13, sums[14] = s14;
    sums[15] = s15;
}
#endif

EW_OFTEN_RUN void ew_portable_dense(const ew_products *p, const int8_t *x, uint8_t *y)
{
    const int8_t *w = p->weights;
    int32_t sums[16], channel = 0;
    for (; channel + 16 <= p->channels; channel += 16, w += 16 * EW_PRODUCTS_PITCH(p)) {
        ew_portable_1x16(x, w, p->depth, ew_products_bias(p, channel), sums);
        ew_portable_store(p, channel, 16, sums, y);
    }
    ew_portable_pixel(p, channel, w, x, y);
}
