#include "share_few.h"

#if EW_DSP
/* Taps of a pair are entered where as many are left as there are: r2 is the address. Frame: 0 columns, 4 first pixel,
 * 8 second pixel, 12 end of all weights. */
#define EW_SHARE_TAPS_16 EW_DSP_TAPS_4 EW_DSP_TAPS_4 EW_DSP_TAPS_4 EW_DSP_TAPS_4
__attribute__((naked, noinline)) void ew_share_few(
    __attribute__((unused)) const ew_dsp_work *work, __attribute__((unused)) const uint32_t *columns,
    __attribute__((unused)) uint8_t *one, __attribute__((unused)) uint8_t *two)
{
    __asm__ volatile("push {r4-r11, lr}\n"
                     "sub sp, #20\n"
                     "ldm r0, {r4-r7}\n" /* weights, channels, count, taps */
                     "strd r1, r2, [sp]\n"
                     "str r3, [sp, #8]\n"
                     "adr.w r2, 3f + 1\n"
                     "movs r3, #12\n" /* bytes of code for a tap: 48 for four */
                     "mls r2, r7, r3, r2\n"
                     "muls r6, r7\n" /* half the channels times two bytes for each tap */
                     "adds r6, r6, r4\n"
                     "str r6, [sp, #12]\n"
                     "mov r1, r4\n"
                     "1:\n"
                     "ldm sp, {r0, r8, r9}\n"
                     "ldrd r4, r5, [r8]\n"
                     "ldrd r6, r7, [r9]\n"
                     "bx r2\n"
                     ".balign 4\n" /* of the section too: adr counts from a multiple of four */
                     EW_SHARE_TAPS_16 EW_SHARE_TAPS_16 "3:\n"
                     "ldrd r8, r9, [sp, #4]\n"
                     "ldr r12, [sp, #12]\n"
                     "strd r4, r5, [r8], #8\n"
                     "strd r6, r7, [r9], #8\n"
                     "strd r8, r9, [sp, #4]\n"
                     "cmp r1, r12\n"
                     "bne 1b\n"
                     "add sp, #20\n"
                     "pop {r4-r11, pc}\n");
}
#else
EW_SHARE_PAIRS_IN_C(ew_share_few)
#endif
