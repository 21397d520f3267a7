/* Complete sums of pairs of channels (see share.h) as stored values. */
#ifndef EW_SHARE_FINISH_H
#define EW_SHARE_FINISH_H

#include "dsp_pairs.h"

/* An even number of channels of two pixels, which may be the same: then `second` is 0. It is how many bytes the sums of
 * the second lie behind those of the first. */
typedef void ew_share_two(const ew_dsp_work *work, const int32_t *sums, uint8_t *one, uint8_t *two, int32_t second);

#define EW_SHARE_TWO_IN_C(name, kind) \
    void name(const ew_dsp_work *work, const int32_t *sums, uint8_t *one, uint8_t *two, int32_t second) \
    { \
        const int32_t *others = sums + second / 4; \
        for (int32_t c = 0; c + 1 < work->count; c += 2, sums += 2, others += 2) { \
            const int32_t a = others[0], both = others[1]; \
            ew_dsp_finish(work, c, sums[0], sums[1], kind, one + c); \
            ew_dsp_finish(work, c, a, both, kind, two + c); \
        } \
    }

#if EW_DSP
/* The registers and the frame of EW_DSP_PAIRS, but r1: sums of the first pixel, 24: bytes to those of the second, 44:
 * end of the first. */
#define EW_SHARE_TWO(name, kind, finish) \
    __attribute__((naked, noinline)) void name( \
        __attribute__((unused)) const ew_dsp_work *work, __attribute__((unused)) const int32_t *sums, \
        __attribute__((unused)) uint8_t *one, __attribute__((unused)) uint8_t *two, \
        __attribute__((unused)) int32_t second) \
    { \
        __asm__ volatile("push {r4-r11, lr}\n" \
                         "sub sp, #52\n" \
                         "ldm r0, {r4-r12}\n" \
                         "str r5, [sp]\n" \
                         "strd r2, r3, [sp, #4]\n" \
                         "sub r2, r8, #8\n" \
                         "strd r8, r2, [sp, #12]\n" \
                         "str r9, [sp, #20]\n" \
                         "ldr r2, [sp, #88]\n" \
                         "str r2, [sp, #24]\n" \
                         "bic r6, r6, #1\n" \
                         "add r6, r1, r6, lsl #2\n" \
                         "str r6, [sp, #44]\n" \
                         "strd r10, r11, [sp, #36]\n" \
                         "str r12, [sp, #32]\n" \
                         "1:\n" \
                         "ldm sp, {r0, r2, r3, r8-r11}\n" \
                         "add r11, r11, r1\n" \
                         "ldrd r6, r7, [r11]\n" \
                         "ldrd r4, r5, [r1], #8\n" \
                         "subs r5, r5, r4\n" \
                         "subs r7, r7, r6\n" \
                         "lsl r4, r4, r8\n" \
                         "lsl r6, r6, r8\n" \
                         "lsl r5, r5, r9\n" \
                         "lsl r7, r7, r9\n" finish \
                         "stm sp, {r0, r2, r3}\n" \
                         "ldr r12, [sp, #44]\n" \
                         "cmp r1, r12\n" \
                         "bne 1b\n" \
                         "add sp, #52\n" \
                         "pop {r4-r11, pc}\n"); \
    }
#else
#define EW_SHARE_TWO(name, kind, finish) EW_SHARE_TWO_IN_C(name, kind)
#endif

/* All channels of `count` pixels whose results lie `pixel` bytes apart; their sums lie densely. An odd number of
 * channels has the numbers of its last one twice. */
typedef void ew_share_finish(const ew_dsp_sums *layer, const int32_t *sums, void *y, int32_t count, int32_t pixel);

#define EW_SHARE_FINISH(name, two, kind) \
    void name(const ew_dsp_sums *layer, const int32_t *sums, void *y, int32_t count, int32_t pixel) \
    { \
        ew_dsp_work work; \
        uint8_t *to = (uint8_t *)y; \
        ew_dsp_open(layer, &work); \
        const int32_t channels = work.count, last = channels - 1; \
        for (; count > 0; count -= 2, to += 2 * pixel, sums += 2 * channels) { \
            uint8_t *const other = count > 1 ? to + pixel : to; \
            const int32_t second = count > 1 ? 4 * channels : 0; \
            if (last > 0) \
                two(&work, sums, to, other, second); \
            for (int32_t i = 0; channels & 1 && i < (count > 1 ? 2 : 1); i++) { \
                uint8_t pair[2]; \
                const int32_t sum = sums[i * channels + last]; \
                ew_dsp_finish(&work, last, sum, sum, kind, pair); \
                to[i * pixel + last] = pair[0]; \
            } \
        } \
    }

#endif /* EW_SHARE_FINISH_H */
