#include "dsp_plain.h"

EW_DSP_PAIRS(ew_dsp_plain, EW_DSP_PLAIN,
             "ldm r0!, {r8, r9, r11, r12}\n" EW_DSP_SCALED("r4", "r8", "r9") EW_DSP_SCALED("r6", "r8", "r9")
                 EW_DSP_SCALED("r5", "r11", "r12") EW_DSP_SCALED("r7", "r11", "r12") EW_DSP_RESULTS
             "strb r4, [r2], #1\n"
             "strb r6, [r3], #1\n"
             "strb r5, [r2], #1\n"
             "strb r7, [r3], #1\n")
