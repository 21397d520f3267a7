#include "dsp_general.h"

EW_DSP_PAIRS(ew_dsp_general, EW_DSP_GENERAL,
             "ldm r0!, {r8, r9, r11, r12}\n" EW_DSP_SIGNED("r4") EW_DSP_SIGNED("r6")
             "ldm r0!, {r8, r9, r11, r12}\n" EW_DSP_SIGNED("r5") EW_DSP_SIGNED("r7") EW_DSP_STORED_PAIRS)
