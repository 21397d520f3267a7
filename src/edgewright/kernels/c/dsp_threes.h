/* Three pixels from their columns: an even number of channels, pair by pair. */
#ifndef EW_DSP_THREES_H
#define EW_DSP_THREES_H

#include "dsp.h"

/* columns: for each two taps a word of each pixel. `step`: bytes from pixel to pixel of the output. */
typedef void ew_dsp_threes(const ew_dsp_work *work, const uint32_t *columns, uint8_t *to, int32_t step);

#define EW_DSP_THREES_IN_C(name, kind) \
    void name(const ew_dsp_work *work, const uint32_t *columns, uint8_t *to, int32_t step) \
    { \
        for (int32_t pixel = 0; pixel < 3; pixel++) { \
            const int16_t *weights = work->weights; \
            for (int32_t c = 0; c < work->count; c += 2, weights += EW_DSP_SKIP(work)) { \
                int32_t a = 0, both = 0; \
                for (int32_t i = 0; i < work->taps; i += 2, weights += 2) { \
                    const uint32_t w = ew_dsp_load(weights), x = columns[i / 2 * 3 + pixel]; \
                    a = ew_dsp_mac(ew_dsp_even(0, w), x, a); \
                    both = ew_dsp_mac(w, x, both); \
                } \
                ew_dsp_finish(work, c, a, both, kind, to + pixel * step + c); \
            } \
        } \
    }

#if EW_DSP
/* By hand, since six sums, three columns, weights and three pointers take all registers that there are: four taps of
 * three pixels and two channels take 20 instructions.
 *
 * r4-r9: sums of channel a and of both, of each pixel. r0 columns, r1 weights, r2 their end. Frame: 0 channels, 4 left,
 * 8 left - 8, 12 shift, 16 columns, 20 bytes of weights of a pair, 24 flip, 28 first pixel, 32 step, 36 low, 40 high,
 * 44 end of all weights, 48 bytes between rows. */
#define EW_DSP_THREES_2 \
    "ldr r12, [r1], #4\n" \
    "ldm r0!, {r3, r10, r11}\n" \
    "sxtb16 lr, r12\n" \
    "smlad r4, lr, r3, r4\n" \
    "smlad r5, r12, r3, r5\n" \
    "smlad r6, lr, r10, r6\n" \
    "smlad r7, r12, r10, r7\n" \
    "smlad r8, lr, r11, r8\n" \
    "smlad r9, r12, r11, r9\n"
#define EW_DSP_THREES(name, kind, finish) \
    __attribute__((naked, noinline)) void name( \
        __attribute__((unused)) const ew_dsp_work *work, __attribute__((unused)) const uint32_t *columns, \
        __attribute__((unused)) uint8_t *to, __attribute__((unused)) int32_t step) \
    { \
        __asm__ volatile("push {r4-r11, lr}\n" \
                         "sub sp, #52\n" \
                         "ldm r0, {r4-r12}\n" \
                         "strd r10, r11, [sp, #36]\n" \
                         "str r12, [sp, #24]\n" \
                         "strd r2, r3, [sp, #28]\n" \
                         "strd r5, r8, [sp]\n" \
                         "subs r8, #8\n" \
                         "strd r8, r9, [sp, #8]\n" \
                         EW_DSP_END("1") \
                         "strd r1, r7, [sp, #16]\n" \
                         "str r6, [sp, #44]\n" \
                         "mov r1, r4\n" \
                         "1:\n" \
                         "ldrd r0, r2, [sp, #16]\n" \
                         "movs r4, #0\n" \
                         "movs r5, #0\n" \
                         "movs r6, #0\n" \
                         "movs r7, #0\n" \
                         "mov r8, #0\n" \
                         "mov r9, #0\n" \
                         "adds r2, r1\n" \
                         "2:\n" EW_DSP_THREES_2 EW_DSP_THREES_2 "cmp r1, r2\n" \
                         "bne 2b\n" \
                         "ldm sp, {r0, r10, r11, r12}\n" \
                         "subs r5, r5, r4\n" \
                         "subs r7, r7, r6\n" \
                         "sub r9, r9, r8\n" \
                         "lsl r4, r4, r10\n" \
                         "lsl r6, r6, r10\n" \
                         "lsl r8, r8, r10\n" \
                         "lsl r5, r5, r11\n" \
                         "lsl r7, r7, r11\n" \
                         "lsl r9, r9, r11\n" finish \
                         "ldrd r2, r3, [sp, #28]\n" \
                         "str r0, [sp]\n" \
                         "strh r6, [r2, r3]\n" \
                         "strh r4, [r2], #2\n" \
                         "str r2, [sp, #28]\n" \
                         "add r2, r2, r3, lsl #1\n" \
                         "strh r8, [r2, #-2]\n" \
                         EW_DSP_NEXT_ROW \
                         "cmp r1, r12\n" \
                         "bne 1b\n" \
                         "add sp, #52\n" \
                         "pop {r4-r11, pc}\n"); \
    }
#define EW_DSP_THREES_STORED(a, b) /* r12: shift */ \
    "asr " a ", " a ", r12\n" \
    "asr " b ", " b ", r12\n" \
    "ssat " a ", #8, " a "\n" \
    "ssat " b ", #8, " b "\n" \
    "bfi " a ", " b ", #8, #8\n"
#define EW_DSP_PLAIN_THREES \
    "ldm r0!, {r2, r3, r10, r11}\n" EW_DSP_SCALED("r4", "r2", "r3") EW_DSP_SCALED("r6", "r2", "r3") \
    EW_DSP_SCALED("r8", "r2", "r3") EW_DSP_SCALED("r5", "r10", "r11") EW_DSP_SCALED("r7", "r10", "r11") \
    EW_DSP_SCALED("r9", "r10", "r11") EW_DSP_THREES_STORED("r4", "r5") EW_DSP_THREES_STORED("r6", "r7") \
    EW_DSP_THREES_STORED("r8", "r9")
#define EW_DSP_THREES_SIGNED(sum) /* r2, r3, r10, r11: multiplier, offset, drop, bias */ \
    "add " sum ", " sum ", r11\n" \
    "and lr, r10, " sum ", asr #31\n" \
    "smmla " sum ", " sum ", r2, r3\n" \
    "sub " sum ", " sum ", lr\n"
#define EW_DSP_THREES_CLAMPED(sum) /* r2, r3: low and high */ \
    "ssub8 lr, " sum ", r2\n" \
    "sel " sum ", " sum ", r2\n" \
    "ssub8 lr, r3, " sum "\n" \
    "sel " sum ", " sum ", r3\n" \
    "eor " sum ", " sum ", r10\n"
#define EW_DSP_GENERAL_THREES \
    "ldm r0!, {r2, r3, r10, r11}\n" EW_DSP_THREES_SIGNED("r4") EW_DSP_THREES_SIGNED("r6") EW_DSP_THREES_SIGNED("r8") \
    "ldm r0!, {r2, r3, r10, r11}\n" EW_DSP_THREES_SIGNED("r5") EW_DSP_THREES_SIGNED("r7") EW_DSP_THREES_SIGNED("r9") \
    EW_DSP_THREES_STORED("r4", "r5") EW_DSP_THREES_STORED("r6", "r7") EW_DSP_THREES_STORED("r8", "r9") \
    "ldrd r2, r3, [sp, #36]\n" \
    "ldr r10, [sp, #24]\n" EW_DSP_THREES_CLAMPED("r4") EW_DSP_THREES_CLAMPED("r6") EW_DSP_THREES_CLAMPED("r8")
#else
#define EW_DSP_THREES(name, kind, finish) EW_DSP_THREES_IN_C(name, kind)
#endif

#endif /* EW_DSP_THREES_H */
