#include "depthwise_plain.h"

#if defined(__GNUC__) && !defined(__clang__) && defined(__OPTIMIZE__)
#define EW_PLAIN_HOT __attribute__((optimize("O2", "no-schedule-insns"))) /* runs most of the time */
#else
#define EW_PLAIN_HOT
#endif

/* An output from the three columns of its window; a test that hardly ever holds is cheaper than two. */
#define EW_PLAIN_OUTPUT(a, b, c)                                                                                      \
    v = a##0 * w0 + b##0 * w1 + c##0 * w2 + a##1 * w3 + b##1 * w4 + c##1 * w5 + a##2 * w6 + b##2 * w7 + c##2 * w8;    \
    v = ew_high_add(v, multiplier, offset) >> shift;                                                                  \
    if ((uint32_t)v + 128u > 255u)                                                                                    \
        v = v < 0 ? -128 : 127;                                                                                       \
    *y = (uint8_t)v;                                                                                                  \
    y += step
#define EW_PLAIN_COLUMN(c, i) c##0 = r0[i], c##1 = r1[i], c##2 = r2[i]

/* Nine weights stay in registers where there are enough, and so do the columns that windows have in common. */
EW_INLINE void ew_plain_row(const ew_lane *lane, const int16_t *r0, const int16_t *r1, const int16_t *r2, uint8_t *y,
                            int32_t stride)
{
    const int16_t *w = lane->nine;
    const int32_t w0 = w[0], w1 = w[1], w2 = w[3], w3 = w[4], w4 = w[5], w5 = w[7], w6 = w[8], w7 = w[9], w8 = w[11];
    const int32_t multiplier = lane->multiplier, offset = lane->offset, shift = lane->shift, step = lane->step;
    int32_t a0, a1, a2, b0, b1, b2, c0, c1, c2, v, n = lane->count;
    EW_PLAIN_COLUMN(a, 0);
#if !defined(__thumb__) || defined(__thumb2__)
    if (stride == 1) {
        EW_PLAIN_COLUMN(b, 1);
        for (; n >= 3; n -= 3, r0 += 3, r1 += 3, r2 += 3) {
            EW_PLAIN_COLUMN(c, 2);
            EW_PLAIN_OUTPUT(a, b, c);
            EW_PLAIN_COLUMN(a, 3);
            EW_PLAIN_OUTPUT(b, c, a);
            EW_PLAIN_COLUMN(b, 4);
            EW_PLAIN_OUTPUT(c, a, b);
        }
    }
#endif
    for (; n > 0; n--, r0 += stride, r1 += stride, r2 += stride) {
        EW_PLAIN_COLUMN(b, 1);
        EW_PLAIN_COLUMN(c, 2);
        EW_PLAIN_OUTPUT(a, b, c);
        a0 = stride == 1 ? b0 : c0, a1 = stride == 1 ? b1 : c1, a2 = stride == 1 ? b2 : c2;
    }
}

EW_INLINE void ew_plain_3x3(const ew_lane *lane, uint8_t *y, int32_t stride)
{
    int16_t *r0 = lane->top, *r1 = ew_ring_next(lane, r0), *r2 = ew_ring_next(lane, r1);
    for (int32_t rows = lane->rows; rows > 0; rows--, y += lane->line) {
        ew_plain_row(lane, r0, r1, r2, y, stride);
        r0 += lane->down, r1 += lane->down, r2 += lane->down;
    }
}

EW_PLAIN_HOT void ew_depthwise_3x3(const ew_depthwise *p, const ew_lane *lane, uint8_t *y)
{
    (void)p;
    ew_plain_3x3(lane, y, 1);
}

EW_PLAIN_HOT void ew_depthwise_3x3_half(const ew_depthwise *p, const ew_lane *lane, uint8_t *y)
{
    (void)p;
    ew_plain_3x3(lane, y, 2);
}

EW_PLAIN_HOT static void ew_any_row(const ew_depthwise *p, const ew_lane *lane, int16_t *top, uint8_t *y)
{
    for (int32_t at = 0, n = lane->count; n > 0; n--, at += p->stride_w, y += lane->step) {
        int32_t sum = lane->start;
        const int16_t *w = lane->weights;
        int16_t *row = top;
        for (int32_t i = 0; i < p->kernel_h; i++, row = ew_ring_next(lane, row)) {
            const int16_t *r = row + at;
            for (const int16_t *end = w + p->taps; w != end; r += 2, w += 2)
                sum += r[0] * w[0] + r[1] * w[1];
        }
        sum = (int32_t)((uint32_t)sum << p->left);
        const int32_t high = ew_high_add(sum, lane->multiplier, lane->offset) - (sum < 0 ? lane->drop : 0);
        *y = ew_lane_stored(high >> lane->shift);
    }
}

void ew_depthwise_any(const ew_depthwise *p, const ew_lane *lane, uint8_t *y)
{
    for (int32_t i = 0; i < lane->rows; i++, y += lane->line)
        ew_any_row(p, lane, lane->top + i * lane->down, y);
}
