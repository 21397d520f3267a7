/* Two pixels from their columns: an even number of channels, pair by pair. */
#ifndef EW_DSP_PAIRS_H
#define EW_DSP_PAIRS_H

#include "dsp.h"

/* columns: for each two taps a word of the first pixel, then one of the second. */
typedef void ew_dsp_pairs(const ew_dsp_work *work, const uint32_t *columns, uint8_t *one, uint8_t *two);

#define EW_DSP_PAIRS_IN_C(name, kind) \
    void name(const ew_dsp_work *work, const uint32_t *columns, uint8_t *one, uint8_t *two) \
    { \
        const int16_t *weights = work->weights; \
        for (int32_t c = 0; c < work->count; c += 2, weights += EW_DSP_SKIP(work)) { \
            int32_t a0 = 0, b0 = 0, a1 = 0, b1 = 0; \
            for (int32_t i = 0; i < work->taps; i += 2, weights += 2) { \
                const uint32_t w = ew_dsp_load(weights), lower = ew_dsp_even(0, w); \
                a0 = ew_dsp_mac(lower, columns[i], a0); \
                b0 = ew_dsp_mac(w, columns[i], b0); \
                a1 = ew_dsp_mac(lower, columns[i + 1], a1); \
                b1 = ew_dsp_mac(w, columns[i + 1], b1); \
            } \
            ew_dsp_finish(work, c, a0, b0, kind, one + c); \
            ew_dsp_finish(work, c, a1, b1, kind, two + c); \
        } \
    }

#if EW_DSP
/* By hand, since no compiler keeps four sums, four columns, two words of weights and three pointers in registers:
 * eight taps of two pixels and two channels take 26 instructions.
 *
 * r4-r7: sums of channel a and of both, of the first and the second pixel. r0 columns, r1 weights, r2 their end.
 * Frame: 0 channels, 4 first pixel, 8 second pixel, 12 left, 16 left - 8, 20 shift, 24 columns, 28 bytes of weights
 * of a pair, 32 flip, 36 low, 40 high, 44 end of all weights, 48 bytes between rows. */
#define EW_DSP_TAPS_2(w, x, y) \
    "sxtb16 lr, " w "\n" \
    "smlad r4, lr, " x ", r4\n" \
    "smlad r5, " w ", " x ", r5\n" \
    "smlad r6, lr, " y ", r6\n" \
    "smlad r7, " w ", " y ", r7\n"
#define EW_DSP_TAPS_4 \
    "ldrd r3, r12, [r1], #8\n" \
    "ldm r0!, {r8-r11}\n" EW_DSP_TAPS_2("r3", "r8", "r9") EW_DSP_TAPS_2("r12", "r10", "r11")
#define EW_DSP_PAIRS(name, kind, finish) \
    __attribute__((naked, noinline)) void name( \
        __attribute__((unused)) const ew_dsp_work *work, __attribute__((unused)) const uint32_t *columns, \
        __attribute__((unused)) uint8_t *one, __attribute__((unused)) uint8_t *two) \
    { \
        __asm__ volatile("push {r4-r11, lr}\n" \
                         "sub sp, #52\n" \
                         "ldm r0, {r4-r12}\n" \
                         "str r5, [sp]\n" \
                         "strd r2, r3, [sp, #4]\n" \
                         "sub r2, r8, #8\n" \
                         "strd r8, r2, [sp, #12]\n" \
                         "str r9, [sp, #20]\n" \
                         EW_DSP_END("1") \
                         "strd r1, r7, [sp, #24]\n" \
                         "str r6, [sp, #44]\n" \
                         "strd r10, r11, [sp, #36]\n" \
                         "str r12, [sp, #32]\n" \
                         "mov r1, r4\n" \
                         "1:\n" \
                         "ldrd r0, r3, [sp, #24]\n" \
                         "movs r4, #0\n" \
                         "movs r5, #0\n" \
                         "movs r6, #0\n" \
                         "movs r7, #0\n" \
                         "adds r2, r1, r3\n" \
                         "tst r3, #8\n" \
                         "bne 3f\n" \
                         "2:\n" EW_DSP_TAPS_4 "3:\n" EW_DSP_TAPS_4 "cmp r1, r2\n" \
                         "bne 2b\n" \
                         "ldm sp, {r0, r2, r3, r8-r10}\n" \
                         "subs r5, r5, r4\n" \
                         "subs r7, r7, r6\n" \
                         "lsl r4, r4, r8\n" \
                         "lsl r6, r6, r8\n" \
                         "lsl r5, r5, r9\n" \
                         "lsl r7, r7, r9\n" finish \
                         "stm sp, {r0, r2, r3}\n" \
                         EW_DSP_NEXT_ROW \
                         "cmp r1, r12\n" \
                         "bne 1b\n" \
                         "add sp, #52\n" \
                         "pop {r4-r11, pc}\n"); \
    }
#define EW_DSP_STORED_PAIRS \
    EW_DSP_RESULTS EW_DSP_CLAMPED("36", "32") \
    "strh r4, [r2], #2\n" \
    "lsrs r4, r4, #16\n" \
    "strh r4, [r3], #2\n"
#define EW_DSP_PLAIN_PAIRS \
    "ldm r0!, {r8, r9, r11, r12}\n" EW_DSP_SCALED("r4", "r8", "r9") EW_DSP_SCALED("r6", "r8", "r9") \
    EW_DSP_SCALED("r5", "r11", "r12") EW_DSP_SCALED("r7", "r11", "r12") EW_DSP_RESULTS \
    "strb r4, [r2], #1\n" \
    "strb r6, [r3], #1\n" \
    "strb r5, [r2], #1\n" \
    "strb r7, [r3], #1\n"
#define EW_DSP_GENERAL_PAIRS \
    "ldm r0!, {r8, r9, r11, r12}\n" EW_DSP_SIGNED("r4") EW_DSP_SIGNED("r6") \
    "ldm r0!, {r8, r9, r11, r12}\n" EW_DSP_SIGNED("r5") EW_DSP_SIGNED("r7") EW_DSP_STORED_PAIRS
#define EW_DSP_WIDE_PAIRS \
    EW_DSP_WIDE_SUMS("r4", "r6") EW_DSP_WIDE_SUMS("r5", "r7") "mov r10, #0\n" EW_DSP_STORED_PAIRS
#define EW_DSP_FLOAT_PAIRS EW_DSP_FLOAT_SUMS("r4", "r6") EW_DSP_FLOAT_SUMS("r5", "r7") EW_DSP_STORED_PAIRS
#else
#define EW_DSP_PAIRS(name, kind, finish) EW_DSP_PAIRS_IN_C(name, kind)
#endif

#endif /* EW_DSP_PAIRS_H */
