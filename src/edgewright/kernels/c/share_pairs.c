#include "share_pairs.h"

#if EW_DSP
/* The registers of EW_DSP_PAIRS. Frame: 0 columns, 4 bytes of weights of a pair, 8 first pixel, 12 second pixel, 16 end
 * of all weights. */
__attribute__((naked, noinline)) void ew_share_pairs(
    __attribute__((unused)) const ew_dsp_work *work, __attribute__((unused)) const uint32_t *columns,
    __attribute__((unused)) uint8_t *one, __attribute__((unused)) uint8_t *two)
{
    __asm__ volatile("push {r4-r11, lr}\n"
                     "sub sp, #20\n"
                     "ldm r0, {r4-r7}\n" /* weights, channels, count, taps */
                     "lsls r7, r7, #1\n"
                     "lsrs r6, r6, #1\n"
                     "mla r6, r6, r7, r4\n"
                     "strd r1, r7, [sp]\n"
                     "strd r2, r3, [sp, #8]\n"
                     "str r6, [sp, #16]\n"
                     "mov r1, r4\n"
                     "1:\n"
                     "ldm sp, {r0, r3, r8, r9}\n"
                     "ldrd r4, r5, [r8]\n"
                     "ldrd r6, r7, [r9]\n"
                     "adds r2, r1, r3\n"
                     "tst r3, #8\n"
                     "bne 3f\n"
                     "2:\n" EW_DSP_TAPS_4 "3:\n" EW_DSP_TAPS_4 "cmp r1, r2\n"
                     "bne 2b\n"
                     "ldrd r8, r9, [sp, #8]\n"
                     "ldr r12, [sp, #16]\n"
                     "strd r4, r5, [r8], #8\n"
                     "strd r6, r7, [r9], #8\n"
                     "strd r8, r9, [sp, #8]\n"
                     "cmp r1, r12\n"
                     "bne 1b\n"
                     "add sp, #20\n"
                     "pop {r4-r11, pc}\n");
}
#else
EW_SHARE_PAIRS_IN_C(ew_share_pairs)
#endif
