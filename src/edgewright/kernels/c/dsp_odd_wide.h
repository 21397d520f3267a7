/* ew_dsp_wide for an odd number of channels. */
#ifndef EW_DSP_ODD_WIDE_H
#define EW_DSP_ODD_WIDE_H

#include "dsp_wide.h"
#include "dsp_odd.h"

ew_dsp_pairs ew_dsp_odd_wide;

#endif /* EW_DSP_ODD_WIDE_H */
