#include "depthwise_rows.h"

#if defined(__ARM_FEATURE_DSP) && defined(__GNUC__) && defined(__thumb2__)

/* By hand, since sums, weights and rows take all registers that there are: 20 instructions for an output at stride 1,
 * 27 at stride 2, about 40 for each channel.
 *
 * r0: `at`, r1-r3 rows, r4-r6 weights of the upper rows column by column (the lower half is for the uppermost), r7 and
 * r8 of the last one (two, then one), r9 and r10 what is loaded, r11 the output's sum, r12 that of the next one, lr that
 * of the one after it. Frame: 0 multiplier, offset, then the lane without its rows: 8 shift, y, 16 channels, start,
 * 24 step, pad, 32 edges, at, 40 end. */
#define EW_ROWS_BEGIN                                                                                                 \
    "push {r4-r11, lr}\n"                                                                                             \
    "sub sp, #44\n"                                                                                                   \
    "ldm r0, {r1-r12}\n"                                                                                              \
    "add r0, sp, #8\n"                                                                                                \
    "stm r0, {r4-r12}\n"                                                                                              \
    "mov r0, r5\n"                                                                                                    \
    "mov r9, r6\n"                                                                                                    \
    "6:\n"                                                                                                            \
    "ldm r9!, {r4, r6, r8, r10, r11}\n"                                                                               \
    "strd r10, r11, [sp]\n"                                                                                           \
    "strd r0, r9, [sp, #12]\n"                                                                                        \
    "mov.w r12, #0xff00ff00\n"                                                                                        \
    "and r5, r4, r12\n"                                                                                               \
    "and r4, r12, r4, lsl #8\n"                                                                                       \
    "and r7, r6, r12\n"                                                                                               \
    "and r6, r12, r6, lsl #8\n"                                                                                       \
    "ldrd r11, r0, [sp, #32]\n"                                                                                       \
    "ldr r10, [sp, #20]\n"                                                                                            \
    "tst r11, #28\n" /* all but the edges to the left and right */                                                    \
    "beq 9f\n"                                                                                                        \
    "tst r11, #4\n"                                                                                                   \
    "itt ne\n"                                                                                                        \
    "lsrne r9, r8, #16\n"                                                                                             \
    "strne r9, [sp, #8]\n"                                                                                            \
    "ldr r9, [sp, #28]\n"                                                                                             \
    "mov r10, #0\n"                                                                                                   \
    "tst r11, #8\n"                                                                                                   \
    "beq 7f\n"                                                                                                        \
    "uxth r12, r9\n"                                                                                                  \
    "smlad r10, r4, r12, r10\n"                                                                                       \
    "smlad r10, r5, r12, r10\n"                                                                                       \
    "smlad r10, r6, r12, r10\n"                                                                                       \
    "bfc r4, #0, #16\n"                                                                                               \
    "bfc r5, #0, #16\n"                                                                                               \
    "bfc r6, #0, #16\n"                                                                                               \
    "7:\n"                                                                                                            \
    "tst r11, #16\n"                                                                                                  \
    "beq 8f\n"                                                                                                        \
    "smlad r10, r7, r9, r10\n"                                                                                        \
    "smlabb r10, r8, r9, r10\n"                                                                                       \
    "mov r7, #0\n"                                                                                                    \
    "mov r8, #0\n"                                                                                                    \
    "8:\n"                                                                                                            \
    "str r10, [sp, #20]\n"                                                                                            \
    "9:\n"
#define EW_ROWS_END /* on to the next channel */                                                                      \
    "adds r1, #1\n"                                                                                                   \
    "adds r2, #1\n"                                                                                                   \
    "adds r3, #1\n"                                                                                                   \
    "ldrd r0, r9, [sp, #12]\n"                                                                                        \
    "adds r0, #1\n"                                                                                                   \
    "ldr r12, [sp, #40]\n"                                                                                            \
    "cmp r9, r12\n"                                                                                                   \
    "bne 6b\n"                                                                                                        \
    "add sp, #44\n"                                                                                                   \
    "pop {r4-r11, pc}\n"
/* r9: the last row's number, r10: what sums start from. */
#define EW_ROWS_UPPER                                                                                                 \
    "ldrsb r9, [r1, r0]\n"                                                                                            \
    "ldrsb r10, [r2, r0]\n"                                                                                           \
    "pkhbt r10, r9, r10, lsl #16\n"
#define EW_ROWS_NEXT /* r10: start; on to the next column */                                                          \
    "ldrd r10, r9, [sp, #20]\n"                                                                                       \
    "adds r0, r0, r9\n"
#define EW_ROWS_FIRST /* column of the first window */                                                                \
    "tst r11, #1\n"                                                                                                   \
    "bne 1f\n"                                                                                                        \
    "ldrsb r9, [r3, r0]\n"                                                                                            \
    "smlabb lr, r9, r7, r10\n" EW_ROWS_UPPER "smlad lr, r10, r4, lr\n" EW_ROWS_NEXT "b 2f\n"                          \
    "1:\n"                                                                                                            \
    "ldr r9, [sp, #28]\n"                                                                                             \
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
    "ldr r9, [sp, #28]\n"                                                                                             \
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
                     "ldr r9, [sp, #32]\n"
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
                     "ldr r9, [sp, #24]\n"
                     "adds r0, r0, r9\n" EW_ROWS_STORE("add r10, r10, r0, asr #1\nstrb r11, [r10]\n")
                     "bne 3b\n"
                     "4:\n"
                     "ldr r9, [sp, #32]\n"
                     "tst r9, #2\n"
                     "beq 5f\n"
                     "ldrsb r9, [r3, r0]\n"
                     "smlabt r12, r9, r7, lr\n" EW_ROWS_UPPER
                     "smlad r12, r10, r5, r12\n" EW_ROWS_LAST EW_ROWS_STORE("ldr r9, [sp, #24]\nstrb r11, [r10, r9]\n")
                     "5:\n" EW_ROWS_END);
}

#else

/* The weights of a channel, row by row; those of the rows above and below the image count for the start alone. */
EW_INLINE int32_t ew_rows_weights(const ew_rows_lane *lane, const int32_t *numbers, int32_t *nine)
{
    static const uint8_t order[8] = {0, 1, 3, 4, 2, 6, 5, 7};
    int32_t start = 0;
    for (int32_t i = 0; i < 8; i++)
        nine[order[i]] = (int8_t)(((uint32_t)numbers[i >> 2] >> (8 * (i & 3))) & 255u) * 256;
    nine[8] = (int16_t)((uint32_t)numbers[2] & 0xffffu);
    for (int32_t i = 0; i < 9; i++)
        if ((i < 3 && lane->edges & EW_ROWS_LEAVES_ABOVE) || (i > 5 && lane->edges & EW_ROWS_LEAVES_BELOW)) {
            start += (lane->pad >> 16) * nine[i];
            nine[i] = 0;
        }
    return start;
}

/* What column `i` of the weights makes of a column of the image, counted from the first window's; -1 is padding. */
EW_INLINE int32_t ew_rows_column(const ew_rows_lane *lane, const int32_t *nine, int32_t channel, int32_t column, int32_t i)
{
    const int32_t leaves = lane->edges & EW_ROWS_LEAVES_LEFT;
    if (column < leaves)
        return (lane->pad >> 16) * (nine[i] + nine[3 + i] + nine[6 + i]);
    const int32_t at = lane->at + (column - leaves) * lane->step + channel;
    return lane->rows[0][at] * nine[i] + lane->rows[1][at] * nine[3 + i] + lane->rows[2][at] * nine[6 + i];
}

EW_INLINE void ew_rows_line(const ew_rows_lane *lane, int32_t stride)
{
    const int32_t columns = -lane->at / lane->step + (lane->edges & EW_ROWS_LEAVES_LEFT);
    const int32_t inner = stride == 1 ? columns - 2 : (columns - 1) / 2;
    const int32_t count = inner + (lane->edges & EW_ROWS_LEAVES_RIGHT ? 1 : 0);
    const int32_t *numbers = lane->channels;
    for (int32_t channel = 0; numbers != lane->end; channel++, numbers += EW_ROWS_NUMBERS) {
        int32_t nine[9];
        const int32_t start = ew_rows_weights(lane, numbers, nine);
        const int32_t shift = lane->edges & EW_ROWS_OWN_SHIFTS ? numbers[2] >> 16 : lane->shift;
        uint8_t *y = lane->y - (stride == 1 ? inner : inner - 1) * lane->step + channel;
        for (int32_t i = 0; i < count; i++, y += lane->step) {
            int32_t v = start + ew_rows_column(lane, nine, channel, i * stride, 0);
            v += ew_rows_column(lane, nine, channel, i * stride + 1, 1);
            v += ew_rows_column(lane, nine, channel, i < inner ? i * stride + 2 : -1, 2);
            v = ew_high_add(v * (1 << EW_ROWS_LEFT), numbers[3], numbers[4]) >> shift;
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
    lane.shift = p->shift;
    lane.channels = p->channels + EW_ROWS_NUMBERS * first;
    lane.end = p->channels + EW_ROWS_NUMBERS * last;
    lane.start = 0;
    for (int32_t row = part->top; row < part->bottom; row++) {
        const int32_t top = row * stride - p->pad_h, is_above = top < 0, is_below = top + 2 >= p->height;
        const int8_t *const middle = x + ew_row(&p->x, top + 1) + end * step + first;
        uint8_t *to = y + ew_row(&p->y, row) + part->left * step + first;
        lane.edges = (is_left ? EW_ROWS_LEAVES_LEFT : 0) + (is_right ? EW_ROWS_LEAVES_RIGHT : 0) +
                     (is_above ? EW_ROWS_LEAVES_ABOVE : 0) + (is_below ? EW_ROWS_LEAVES_BELOW : 0) +
                     (p->own_shifts ? EW_ROWS_OWN_SHIFTS : 0);
        lane.rows[0] = is_above ? middle : x + ew_row(&p->x, top) + end * step + first;
        lane.rows[1] = middle;
        lane.rows[2] = is_below ? middle : x + ew_row(&p->x, top + 2) + end * step + first;
        lane.y = to + (inner - (stride - 1)) * step;
        p->line(&lane);
        if (p->low > -128 || p->high < 127 || p->flip)
            ew_rows_settle(p, to, count, last - first);
    }
}
