#include "dsp_general.h"

EW_DSP_PAIRS(ew_dsp_general, 1,
             EW_DSP_SIGNED("r4") EW_DSP_SIGNED("r6")
             "ldm r0!, {r8, r9, r11, r12}\n" EW_DSP_SIGNED("r5") EW_DSP_SIGNED("r7") EW_DSP_RESULTS
                 EW_DSP_CLAMPED("36", "44")
             "strh r4, [r2], #2\n"
             "lsrs r4, r4, #16\n"
             "strh r4, [r3], #2\n")
