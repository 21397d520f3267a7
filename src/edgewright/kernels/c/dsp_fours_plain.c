#include "dsp_fours_plain.h"

EW_DSP_FOURS(ew_dsp_fours_plain, "sxtb16", 0, EW_DSP_PLAIN,
             "ldm r0!, {r8, r9, r11, r12}\n" EW_DSP_SCALED("r4", "r8", "r9") EW_DSP_SCALED("r5", "r11", "r12")
             "ldm r0!, {r8, r9, r11, r12}\n" EW_DSP_SCALED("r6", "r8", "r9") EW_DSP_SCALED("r7", "r11", "r12")
                 EW_DSP_RESULTS
             "strb r4, [r2], #1\n"
             "strb r5, [r2], #1\n"
             "strb r6, [r2], #1\n"
             "strb r7, [r2], #1\n")
