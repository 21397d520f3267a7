#include "depthwise_rows.h"

#if defined(__ARM_FEATURE_DSP) && defined(__GNUC__) && defined(__thumb2__)

/* By hand, since sums, weights and rows take all registers that there are: 20 instructions for an output at stride 1,
 * 27 at stride 2, about 50 for each channel.
 *
 * r0: `at`, r1-r3 rows, r4-r6 weights of the upper rows column by column (the lower half is for the uppermost), r7 and
 * r8 of the last one (two, then one), r9 and r10 what is loaded, r11 the output's sum, r12 that of the next one, lr that
 * of the one after it. The frame is a copy of the lane: 0 multiplier, offset, shift, y, 16 start, step, 24 pad, leaves,
 * 32 at, flags, 40 rows, 52 weights, factors, 60 their end. */
#define EW_ROWS_BEGIN                                                                                                 \
    "push {r4-r11, lr}\n"                                                                                             \
    "sub sp, #68\n"                                                                                                   \
    "ldm r0!, {r1-r8}\n"                                                                                              \
    "stm sp, {r1-r8}\n"                                                                                               \
    "ldm r0, {r1-r8}\n"                                                                                               \
    "add r0, sp, #32\n"                                                                                               \
    "stm r0, {r1-r8}\n"                                                                                               \
    "ldrd r0, r9, [sp, #52]\n"                                                                                        \
    "6:\n"                                                                                                            \
    "ldr r4, [r0]\n"                                                                                                  \
    "ldr r6, [r0, #4]\n"                                                                                              \
    "ldrsb r8, [r0, #8]\n"                                                                                            \
    "adds r0, #9\n"                                                                                                   \
    "ldm r9!, {r10, r11}\n"                                                                                           \
    "strd r10, r11, [sp]\n"                                                                                           \
    "mov.w r12, #0xff00ff00\n"                                                                                        \
    "and r5, r4, r12\n"                                                                                               \
    "and r4, r12, r4, lsl #8\n"                                                                                       \
    "and r7, r6, r12\n"                                                                                               \
    "and r6, r12, r6, lsl #8\n"                                                                                       \
    "lsl r8, r8, #8\n"                                                                                                \
    "ldr r1, [sp, #36]\n"                                                                                             \
    "cbz r1, 9f\n"                                                                                                    \
    "tst r1, #1\n"                                                                                                    \
    "itt ne\n"                                                                                                        \
    "ldrne r10, [r9], #4\n"                                                                                           \
    "strne r10, [sp, #8]\n"                                                                                           \
    "ldr r11, [sp, #24]\n"                                                                                            \
    "mov r12, #0\n"                                                                                                   \
    "tst r1, #2\n"                                                                                                    \
    "beq 7f\n"                                                                                                        \
    "uxth r10, r11\n"                                                                                                 \
    "smlad r12, r4, r10, r12\n"                                                                                       \
    "smlad r12, r5, r10, r12\n"                                                                                       \
    "smlad r12, r6, r10, r12\n"                                                                                       \
    "bfc r4, #0, #16\n"                                                                                               \
    "bfc r5, #0, #16\n"                                                                                               \
    "bfc r6, #0, #16\n"                                                                                               \
    "7:\n"                                                                                                            \
    "tst r1, #4\n"                                                                                                    \
    "beq 8f\n"                                                                                                        \
    "smlad r12, r7, r11, r12\n"                                                                                       \
    "smlabb r12, r8, r11, r12\n"                                                                                      \
    "mov r7, #0\n"                                                                                                    \
    "mov r8, #0\n"                                                                                                    \
    "8:\n"                                                                                                            \
    "str r12, [sp, #16]\n"                                                                                            \
    "9:\n"                                                                                                            \
    "strd r0, r9, [sp, #52]\n"                                                                                        \
    "ldrd r1, r2, [sp, #40]\n"                                                                                        \
    "ldr r3, [sp, #48]\n"                                                                                             \
    "ldrd r11, r0, [sp, #28]\n"                                                                                       \
    "ldr r10, [sp, #16]\n"
#define EW_ROWS_END /* on to the next channel */                                                                      \
    "adds r1, #1\n"                                                                                                   \
    "adds r2, #1\n"                                                                                                   \
    "adds r3, #1\n"                                                                                                   \
    "strd r1, r2, [sp, #40]\n"                                                                                        \
    "ldr r1, [sp, #12]\n"                                                                                             \
    "str r3, [sp, #48]\n"                                                                                             \
    "adds r1, #1\n"                                                                                                   \
    "str r1, [sp, #12]\n"                                                                                             \
    "ldrd r0, r9, [sp, #52]\n"                                                                                        \
    "ldr r1, [sp, #60]\n"                                                                                             \
    "cmp r0, r1\n"                                                                                                    \
    "bne 6b\n"                                                                                                        \
    "add sp, #68\n"                                                                                                   \
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
#define EW_ROWS_TEXT_OF(n) #n
#define EW_ROWS_TEXT(n) EW_ROWS_TEXT_OF(n)
#define EW_ROWS_STORE(where)                                                                                          \
    "ldrd r9, r10, [sp]\n"                                                                                            \
    "lsl r11, r11, #" EW_ROWS_TEXT(EW_ROWS_LEFT) "\n"                                                                 \
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

/* The weights of a channel, row by row; those of the rows above and below the image count for the start alone. */
EW_INLINE int32_t ew_rows_weights(const ew_rows_lane *lane, const int8_t *w, int32_t *nine)
{
    static const uint8_t order[9] = {0, 1, 3, 4, 2, 6, 5, 7, 8};
    int32_t start = 0;
    for (int32_t i = 0; i < 9; i++)
        nine[order[i]] = w[i] * 256;
    for (int32_t i = 0; i < 9; i++)
        if ((i < 3 && lane->flags & 2) || (i > 5 && lane->flags & 4)) {
            start += (lane->pad >> 16) * nine[i];
            nine[i] = 0;
        }
    return start;
}

/* What column `i` of the weights makes of a column of the image, counted from the first window's; -1 is padding. */
EW_INLINE int32_t ew_rows_column(const ew_rows_lane *lane, const int32_t *nine, int32_t channel, int32_t column, int32_t i)
{
    if (column < (lane->leaves & 1))
        return (lane->pad >> 16) * (nine[i] + nine[3 + i] + nine[6 + i]);
    const int32_t at = lane->at + (column - (lane->leaves & 1)) * lane->step + channel;
    return lane->rows[0][at] * nine[i] + lane->rows[1][at] * nine[3 + i] + lane->rows[2][at] * nine[6 + i];
}

EW_INLINE void ew_rows_line(const ew_rows_lane *lane, int32_t stride)
{
    const int32_t columns = -lane->at / lane->step + (lane->leaves & 1);
    const int32_t inner = stride == 1 ? columns - 2 : (columns - 1) / 2, count = 2 + (lane->flags & 1);
    const int32_t *factors = lane->factors;
    const int8_t *w = lane->weights;
    for (int32_t channel = 0; w != lane->end; channel++, w += 9, factors += count) {
        int32_t nine[9];
        const int32_t start = ew_rows_weights(lane, w, nine), shift = count == 3 ? factors[2] : lane->shift;
        uint8_t *y = lane->y - (stride == 1 ? inner : inner - 1) * lane->step + channel;
        for (int32_t i = 0; i < inner + (lane->leaves >> 1); i++, y += lane->step) {
            int32_t v = start + ew_rows_column(lane, nine, channel, i * stride, 0);
            v += ew_rows_column(lane, nine, channel, i * stride + 1, 1);
            v += ew_rows_column(lane, nine, channel, i < inner ? i * stride + 2 : -1, 2);
            v = ew_high_add(v * (1 << EW_ROWS_LEFT), factors[0], factors[1]) >> shift;
            *y = (uint8_t)ew_clamp(v, -128, 127);
        }
    }
}

void ew_rows_full(const ew_rows_lane *lane) { ew_rows_line(lane, 1); }

void ew_rows_half(const ew_rows_lane *lane) { ew_rows_line(lane, 2); }

#endif

/* What lines leave out: ranges smaller than the type's, unsigned types. */
static void ew_rows_settle(const ew_rows *p, uint8_t *y, int32_t count, int32_t channels)
{
    for (; count > 0; count--, y += p->y.pixel)
        for (int32_t i = 0; i < channels; i++)
            y[i] = (uint8_t)(ew_between(p->low, (int8_t)y[i], p->high) + p->flip);
}

void ew_rows_run(const ew_rows *p, const int8_t *x, uint8_t *y, const ew_part *part, int32_t first, int32_t last)
{
    const int32_t count = part->right - part->left, step = p->x.pixel, stride = p->stride;
    const int32_t left = part->left * stride - p->pad_w, is_left = left < 0;
    const int32_t is_right = left + (count - 1) * stride + 3 > p->width, inner = count - is_right;
    const int32_t end = left + inner * stride + (stride == 1 ? 2 : 1); /* column behind those of inner outputs */
    ew_rows_lane lane;
    if (count <= 0 || first >= last)
        return;
    lane.step = step;
    lane.pad = (int32_t)(((uint32_t)p->zero & 0xffffu) * 0x10001u);
    lane.at = (left + is_left - end) * step;
    lane.leaves = is_left + 2 * is_right;
    lane.shift = p->shift;
    lane.weights = p->weights + 9 * first;
    lane.end = p->weights + 9 * last;
    lane.factors = p->factors + p->factor_count * first;
    for (int32_t row = part->top; row < part->bottom; row++) {
        const int32_t top = row * stride - p->pad_h, is_above = top < 0, is_below = top + 2 >= p->height;
        const int8_t *const middle = x + ew_row(&p->x, top + 1) + end * step + first;
        uint8_t *to = y + ew_row(&p->y, row) + part->left * step + first;
        lane.flags = (p->factor_count == 3) + 2 * is_above + 4 * is_below;
        lane.start = 0;
        lane.rows[0] = is_above ? middle : x + ew_row(&p->x, top) + end * step + first;
        lane.rows[1] = middle;
        lane.rows[2] = is_below ? middle : x + ew_row(&p->x, top + 2) + end * step + first;
        lane.y = to + (inner - (stride - 1)) * step;
        p->line(&lane);
        if (p->low > -128 || p->high < 127 || p->flip)
            ew_rows_settle(p, to, count, last - first);
    }
}
