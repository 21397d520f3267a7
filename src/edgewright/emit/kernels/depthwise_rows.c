#include "depthwise_rows.h"

#if defined(__GNUC__) && !defined(__clang__) && defined(__OPTIMIZE__)
#define EW_ROWS_OFTEN __attribute__((optimize("O2"))) /* for rows of few pixels, most of the time */
#else
#define EW_ROWS_OFTEN
#endif

#if defined(__ARM_FEATURE_DSP) && defined(__GNUC__) && defined(__thumb2__)

/* By hand, since sums, weights and rows take all registers that there are: 20 instructions for an output at stride 1,
 * 27 at stride 2.
 *
 * r0: `at`, r1-r3 rows, r4-r6 weights of the upper rows, r7 and r8 of the last one, r9 and r10 what is loaded, r11 the
 * output's sum, r12 that of the next one, lr that of the one after it. Frame: 0 multiplier, offset, shift, y, 16 start,
 * step, 24 pad, 28 the edges. */
#define EW_ROWS_BEGIN                                                                                                 \
    "push {r4-r11, lr}\n"                                                                                             \
    "sub sp, #32\n"                                                                                                   \
    "ldm r0!, {r4-r9}\n"                                                                                              \
    "stm sp, {r4-r9}\n"                                                                                               \
    "ldm r0!, {r1-r9}\n"                                                                                              \
    "ldrd r10, r11, [r0]\n" /* `at` and the edges */                                                                  \
    "strd r9, r11, [sp, #24]\n"                                                                                       \
    "mov r0, r10\n"                                                                                                   \
    "ldrd r10, r9, [sp, #16]\n"
#define EW_ROWS_END                                                                                                   \
    "add sp, #32\n"                                                                                                   \
    "pop {r4-r11, pc}\n"
/* r9: the last row's number, r10: what sums start from. */
#define EW_ROWS_UPPER                                                                                                 \
    "ldrsb r9, [r1, r0]\n"                                                                                            \
    "ldrsb r10, [r2, r0]\n"                                                                                           \
    "pkhbt r10, r9, r10, lsl #16\n"
#define EW_ROWS_NEXT /* r10: start; on to the next column */                                                          \
    "ldrd r10, r9, [sp, #16]\n"                                                                                       \
    "adds r0, r0, r9\n"
#define EW_ROWS_FIRST /* column of the first window */                                                                \
    "tst r11, #1\n"                                                                                                   \
    "bne 1f\n"                                                                                                        \
    "ldrsb r9, [r3, r0]\n"                                                                                            \
    "smlabb lr, r9, r7, r10\n" EW_ROWS_UPPER "smlad lr, r10, r4, lr\n" EW_ROWS_NEXT "b 2f\n"                          \
    "1:\n"                                                                                                            \
    "ldr r9, [sp, #24]\n"                                                                                             \
    "smlabb lr, r9, r7, r10\n"                                                                                        \
    "smlad lr, r9, r4, lr\n"                                                                                          \
    "2:\n"
#define EW_ROWS_STORE(where)                                                                                          \
    "ldrd r9, r10, [sp]\n"                                                                                            \
    "lsl r11, r11, #8\n"                                                                                              \
    "smmla r11, r11, r9, r10\n"                                                                                       \
    "ldrd r9, r10, [sp, #8]\n"                                                                                        \
    "asr r11, r11, r9\n"                                                                                              \
    "ssat r11, #8, r11\n" where
#define EW_ROWS_LAST /* a last column that does not exist */                                                          \
    "ldr r9, [sp, #24]\n"                                                                                             \
    "smlabb r11, r9, r8, r12\n"                                                                                       \
    "smlad r11, r9, r6, r11\n"
#define EW_ROWS_NAKED __attribute__((naked, noinline))

EW_ROWS_NAKED void ew_rows_full(__attribute__((unused)) const ew_rows_lane *lane)
{
    __asm__ volatile(EW_ROWS_BEGIN EW_ROWS_FIRST
                     "ldrsb r9, [r3, r0]\n"
                     "smlabt r12, r9, r7, lr\n"
                     "smlabb lr, r9, r7, r10\n" EW_ROWS_UPPER
                     "smlad r12, r10, r5, r12\n"
                     "smlad lr, r10, r4, lr\n" EW_ROWS_NEXT
                     "beq 4f\n"
                     "3:\n"
                     "ldrsb r9, [r3, r0]\n"
                     "smlabb r11, r9, r8, r12\n"
                     "smlabt r12, r9, r7, lr\n"
                     "smlabb lr, r9, r7, r10\n" EW_ROWS_UPPER
                     "smlad r11, r10, r6, r11\n"
                     "smlad r12, r10, r5, r12\n"
                     "smlad lr, r10, r4, lr\n" EW_ROWS_STORE("strb r11, [r10, r0]\n") EW_ROWS_NEXT
                     "bne 3b\n"
                     "4:\n"
                     "ldr r9, [sp, #28]\n"
                     "tst r9, #2\n"
                     "beq 5f\n" EW_ROWS_LAST EW_ROWS_STORE("strb r11, [r10, r0]\n")
                     "5:\n" EW_ROWS_END);
}

EW_ROWS_NAKED void ew_rows_half(__attribute__((unused)) const ew_rows_lane *lane)
{
    __asm__ volatile(EW_ROWS_BEGIN EW_ROWS_FIRST
                     "cmp r0, #0\n"
                     "beq 4f\n"
                     "3:\n"
                     "ldrsb r9, [r3, r0]\n"
                     "smlabt r12, r9, r7, lr\n" EW_ROWS_UPPER
                     "smlad r12, r10, r5, r12\n" EW_ROWS_NEXT
                     "ldrsb r9, [r3, r0]\n"
                     "smlabb r11, r9, r8, r12\n"
                     "smlabb lr, r9, r7, r10\n" EW_ROWS_UPPER
                     "smlad r11, r10, r6, r11\n"
                     "smlad lr, r10, r4, lr\n"
                     "ldr r9, [sp, #20]\n"
                     "adds r0, r0, r9\n" EW_ROWS_STORE("add r10, r10, r0, asr #1\nstrb r11, [r10]\n")
                     "bne 3b\n"
                     "4:\n"
                     "ldr r9, [sp, #28]\n"
                     "tst r9, #2\n"
                     "beq 5f\n"
                     "ldrsb r9, [r3, r0]\n"
                     "smlabt r12, r9, r7, lr\n" EW_ROWS_UPPER
                     "smlad r12, r10, r5, r12\n" EW_ROWS_LAST EW_ROWS_STORE("ldr r9, [sp, #20]\nstrb r11, [r10, r9]\n")
                     "5:\n" EW_ROWS_END);
}

#else

/* What column `i` of the weights makes of a column of the image, counted from the first window's; -1 is padding. */
EW_INLINE int32_t ew_rows_column(const ew_rows_lane *lane, int32_t column, int32_t i)
{
    const int32_t upper = (int16_t)(lane->top[i] & 0xffff), middle = lane->top[i] >> 16;
    const int32_t lower = i == 1 ? lane->bottom[0] >> 16 : (int16_t)(lane->bottom[i >> 1] & 0xffff);
    if (column < (lane->leaves & 1))
        return (lane->pad >> 16) * (upper + middle + lower);
    const int32_t at = lane->at + (column - (lane->leaves & 1)) * lane->step;
    return lane->rows[0][at] * upper + lane->rows[1][at] * middle + lane->rows[2][at] * lower;
}

EW_INLINE void ew_rows_line(const ew_rows_lane *lane, int32_t stride)
{
    const int32_t columns = -lane->at / lane->step + (lane->leaves & 1);
    const int32_t inner = stride == 1 ? columns - 2 : (columns - 1) / 2;
    uint8_t *y = lane->y - (stride == 1 ? inner : inner - 1) * lane->step;
    for (int32_t i = 0; i < inner + (lane->leaves >> 1); i++, y += lane->step) {
        int32_t v = lane->start + ew_rows_column(lane, i * stride, 0) + ew_rows_column(lane, i * stride + 1, 1);
        v += ew_rows_column(lane, i < inner ? i * stride + 2 : -1, 2);
        v = ew_high_add(v * 256, lane->multiplier, lane->offset) >> lane->shift;
        *y = (uint8_t)ew_clamp(v, -128, 127);
    }
}

void ew_rows_full(const ew_rows_lane *lane) { ew_rows_line(lane, 1); }

void ew_rows_half(const ew_rows_lane *lane) { ew_rows_line(lane, 2); }

#endif

/* Two 16-bit numbers in one. */
EW_INLINE int32_t ew_rows_pair(int32_t low, int32_t high) { return (int32_t)(((uint32_t)high << 16) | ((uint32_t)low & 0xffffu)); }

/* Weights of a channel; those of the rows above and below the image count for the start alone. */
EW_INLINE void ew_rows_weights(const ew_rows *p, const int8_t *w, int32_t is_above, int32_t is_below, ew_rows_lane *lane)
{
    const int32_t factor = 1 << p->left, upper = is_above ? 0 : factor, lower = is_below ? 0 : factor;
    lane->start = 0;
    if (is_above)
        lane->start += p->zero * factor * (w[0] + w[1] + w[2]);
    if (is_below)
        lane->start += p->zero * factor * (w[6] + w[7] + w[8]);
    lane->top[0] = ew_rows_pair(w[0] * upper, w[3] * factor);
    lane->top[1] = ew_rows_pair(w[1] * upper, w[4] * factor);
    lane->top[2] = ew_rows_pair(w[2] * upper, w[5] * factor);
    lane->bottom[0] = ew_rows_pair(w[6] * lower, w[7] * lower);
    lane->bottom[1] = w[8] * lower;
}

/* What lines leave out: ranges smaller than the type's, unsigned types. */
static void ew_rows_settle(const ew_rows *p, uint8_t *y, int32_t count)
{
    for (; count > 0; count--, y += p->y.pixel)
        *y = (uint8_t)(ew_between(p->low, (int8_t)*y, p->high) + p->flip);
}

EW_ROWS_OFTEN void ew_rows_run(const ew_rows *p, const int8_t *x, uint8_t *y, const ew_part *part, int32_t first, int32_t last)
{
    const int32_t count = part->right - part->left, step = p->x.pixel, stride = p->stride;
    const int32_t left = part->left * stride - p->pad_w, is_left = left < 0;
    const int32_t is_right = left + (count - 1) * stride + 3 > p->width, inner = count - is_right;
    const int32_t end = left + inner * stride + (stride == 1 ? 2 : 1); /* column behind those of inner outputs */
    ew_rows_lane lane;
    if (count <= 0)
        return;
    lane.step = step;
    lane.pad = ew_rows_pair(p->zero, p->zero);
    lane.at = (left + is_left - end) * step;
    lane.leaves = is_left + 2 * is_right;
    lane.shift = p->shift;
    for (int32_t row = part->top; row < part->bottom; row++) {
        const int32_t top = row * stride - p->pad_h, is_above = top < 0, is_below = top + 2 >= p->height;
        const int8_t *const middle = x + ew_row(&p->x, top + 1) + end * step + first;
        uint8_t *to = y + ew_row(&p->y, row) + part->left * step + first;
        lane.rows[0] = is_above ? middle : x + ew_row(&p->x, top) + end * step + first;
        lane.rows[1] = middle;
        lane.rows[2] = is_below ? middle : x + ew_row(&p->x, top + 2) + end * step + first;
        lane.y = to + (inner - (stride - 1)) * step;
        for (int32_t channel = first; channel < last; channel++, to++) {
            const int32_t *factors = p->factors + p->factor_count * channel;
            lane.multiplier = factors[0];
            lane.offset = factors[1];
            if (p->factor_count == 3)
                lane.shift = factors[2];
            ew_rows_weights(p, p->weights + 9 * channel, is_above, is_below, &lane);
            p->line(&lane);
            if (p->low > -128 || p->high < 127 || p->flip)
                ew_rows_settle(p, to, count);
            lane.rows[0]++, lane.rows[1]++, lane.rows[2]++, lane.y++;
        }
    }
}
