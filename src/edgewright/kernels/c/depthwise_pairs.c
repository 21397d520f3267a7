#include "depthwise_pairs.h"

#if defined(__ARM_FEATURE_DSP) && defined(__GNUC__)

/* Two outputs at a time from three rows of the ring. Compilers run out of registers here and spill; by hand it is 32
 * instructions for 18 products. The second output of the last pair may not exist. At stride 1 a row of weights
 * (w0, w1), (w1, w2) meets (x0, x1), (x2, x3); at stride 2 (w0, w1), (., w2) meet (x0, x1), (x2, .) and
 * (x2, x3), (x4, .). */
#define EW_PAIRS_LOOP(first, second, third)                                                                           \
    uint32_t a, b, k, l;                                                                                              \
    int32_t s, t;                                                                                                     \
    __asm__ volatile("1:\n" first second third                                                                        \
                     "ldrd %[a], %[b], [%[w]]\n"                                                                      \
                     "ldr %[k], [%[w], #8]\n"                                                                         \
                     "smmla %[s], %[s], %[a], %[b]\n"                                                                 \
                     "smmla %[t], %[t], %[a], %[b]\n"                                                                 \
                     "asr %[s], %[s], %[k]\n"                                                                         \
                     "asr %[t], %[t], %[k]\n"                                                                         \
                     "ssat %[s], #8, %[s]\n"                                                                          \
                     "ssat %[t], #8, %[t]\n"                                                                          \
                     "subs %[n], %[n], #2\n"                                                                          \
                     "strb %[s], [%[y]]\n"                                                                            \
                     "bmi 2f\n"                                                                                       \
                     "strb %[t], [%[y], %[step]]\n"                                                                   \
                     "add %[y], %[y], %[step], lsl #1\n"                                                              \
                     "bne 1b\n"                                                                                       \
                     "2:\n"                                                                                           \
                     : [a] "=&r"(a), [b] "=&r"(b), [k] "=&r"(k), [l] "=&r"(l), [s] "=&r"(s), [t] "=&r"(t),            \
                       [r0] "+r"(r0), [r1] "+r"(r1), [r2] "+r"(r2), [y] "+r"(y), [n] "+r"(n)                          \
                     : [w] "r"(lane), [step] "r"(lane->step)                                                          \
                     : "cc", "memory")

EW_INLINE void ew_pairs_row(const ew_lane *lane, int16_t *r0, int16_t *r1, int16_t *r2, uint8_t *y, int32_t n)
{
#define EW_ROW(r, at, both, top, end)                                                                                 \
    "ldrd %[a], %[b], [%[" r "]], #4\n"                                                                               \
    "ldrd %[k], %[l], [%[w], #" at "]\n" both " %[s], %[a], %[k]" end("s") top " %[t], %[a], %[k]" end("t")           \
    "smlabt %[s], %[b], %[l], %[s]\n"                                                                                 \
    "smlad %[t], %[b], %[l], %[t]\n"
#define EW_FROM(s) "\n"
#define EW_ONTO(s) ", %[" s "]\n"
    EW_PAIRS_LOOP(EW_ROW("r0", "12", "smuad", "smultb", EW_FROM), EW_ROW("r1", "20", "smlad", "smlatb", EW_ONTO),
                  EW_ROW("r2", "28", "smlad", "smlatb", EW_ONTO));
#undef EW_ROW
}

EW_INLINE void ew_pairs_row_half(const ew_lane *lane, int16_t *r0, int16_t *r1, int16_t *r2, uint8_t *y, int32_t n)
{
#define EW_ROW(r, at, both, end)                                                                                      \
    "ldrd %[k], %[l], [%[w], #" at "]\n"                                                                              \
    "ldrd %[a], %[b], [%[" r "]], #8\n" both " %[s], %[a], %[k]" end("s") both " %[t], %[b], %[k]" end("t")           \
    "ldr %[a], [%[" r "]]\n"                                                                                          \
    "smlabt %[s], %[b], %[l], %[s]\n"                                                                                 \
    "smlabt %[t], %[a], %[l], %[t]\n"
    EW_PAIRS_LOOP(EW_ROW("r0", "12", "smuad", EW_FROM), EW_ROW("r1", "20", "smlad", EW_ONTO),
                  EW_ROW("r2", "28", "smlad", EW_ONTO));
#undef EW_ROW
#undef EW_FROM
#undef EW_ONTO
}

#else

/* A kernel's row for two outputs, `stride` apart. */
EW_INLINE void ew_pair_row(const int16_t *r, const int16_t *w, int32_t stride, int32_t *s, int32_t *t)
{
    const uint32_t a = ew_pair_at(r), b = ew_pair_at(r + 2), k = ew_pair_at(w), l = ew_pair_at(w + 2);
    *s = ew_pair_bt(b, l, ew_pair_both(a, k, *s));
    *t = stride == 1 ? ew_pair_both(b, l, ew_pair_tb(a, k, *t))
                     : ew_pair_bt(ew_pair_at(r + 4), l, ew_pair_both(b, k, *t));
}

EW_INLINE void ew_pairs(const ew_lane *lane, const int16_t *r0, const int16_t *r1, const int16_t *r2, uint8_t *y,
                        int32_t n, int32_t stride)
{
    for (; n > 0; n -= 2, r0 += 2 * stride, r1 += 2 * stride, r2 += 2 * stride, y += 2 * lane->step) {
        int32_t s = 0, t = 0;
        ew_pair_row(r0, lane->nine, stride, &s, &t);
        ew_pair_row(r1, lane->nine + 4, stride, &s, &t);
        ew_pair_row(r2, lane->nine + 8, stride, &s, &t);
        y[0] = ew_lane_stored(ew_high_add(s, lane->multiplier, lane->offset) >> lane->shift);
        if (n > 1)
            y[lane->step] = ew_lane_stored(ew_high_add(t, lane->multiplier, lane->offset) >> lane->shift);
    }
}

#define ew_pairs_row(lane, r0, r1, r2, y, n) ew_pairs(lane, r0, r1, r2, y, n, 1)
#define ew_pairs_row_half(lane, r0, r1, r2, y, n) ew_pairs(lane, r0, r1, r2, y, n, 2)

#endif

#define EW_PAIRS_ROWS(name)                                                                                           \
    int16_t *r0 = lane->top, *r1 = ew_ring_next(lane, r0), *r2 = ew_ring_next(lane, r1);                              \
    for (int32_t rows = lane->rows; rows > 0; rows--, y += lane->line) {                                              \
        name(lane, r0, r1, r2, y, lane->count);                                                                       \
        r0 += lane->down, r1 += lane->down, r2 += lane->down;                                                         \
    }                                                                                                                 \
    (void)p

void ew_depthwise_3x3(const ew_depthwise *p, const ew_lane *lane, uint8_t *y)
{
    EW_PAIRS_ROWS(ew_pairs_row);
}

void ew_depthwise_3x3_half(const ew_depthwise *p, const ew_lane *lane, uint8_t *y)
{
    EW_PAIRS_ROWS(ew_pairs_row_half);
}

#if defined(__GNUC__) && !defined(__clang__) && defined(__OPTIMIZE__)
__attribute__((optimize("O2")))
#endif
static void ew_any_row(const ew_depthwise *p, const ew_lane *lane, int16_t *top, uint8_t *y)
{
    const int32_t multiplier = lane->multiplier, offset = lane->offset, shift = lane->shift, step = lane->step;
    const int32_t drop = lane->drop, stride = p->stride_w, left = p->left;
    for (int32_t at = 0, n = lane->count; n > 0; n -= 2, at += 2 * stride, y += 2 * step) {
        int32_t s = lane->start, t = s;
        const int16_t *w = lane->weights;
        int16_t *row = top;
        for (int32_t i = 0; i < p->kernel_h; i++, row = ew_ring_next(lane, row)) {
            const int16_t *r = row + at;
            for (const int16_t *end = w + p->taps; w != end; r += 2, w += 2) {
                const uint32_t k = ew_pair_at(w);
                s = ew_pair_both(ew_pair_at(r), k, s);
                t = ew_pair_both(ew_pair_at(r + stride), k, t);
            }
        }
        s = (int32_t)((uint32_t)s << left);
        t = (int32_t)((uint32_t)t << left);
        y[0] = ew_lane_stored((ew_high_add(s, multiplier, offset) - (s < 0 ? drop : 0)) >> shift);
        if (n > 1)
            y[step] = ew_lane_stored((ew_high_add(t, multiplier, offset) - (t < 0 ? drop : 0)) >> shift);
    }
}

void ew_depthwise_any(const ew_depthwise *p, const ew_lane *lane, uint8_t *y)
{
    for (int32_t i = 0; i < lane->rows; i++, y += lane->line)
        ew_any_row(p, lane, lane->top + i * lane->down, y);
}
