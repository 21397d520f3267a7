#include "dsp_wide.h"

EW_DSP_PAIRS(ew_dsp_wide, EW_DSP_WIDE,
             EW_DSP_WIDE_SUMS("r4", "r6") EW_DSP_WIDE_SUMS("r5", "r7") "mov r10, #0\n" EW_DSP_STORED_PAIRS)
