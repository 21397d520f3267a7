/* ew_dsp_general for an odd number of channels. */
#ifndef EW_DSP_ODD_GENERAL_H
#define EW_DSP_ODD_GENERAL_H

#include "dsp_general.h"
#include "dsp_odd.h"

ew_dsp_pairs ew_dsp_odd_general;

#endif /* EW_DSP_ODD_GENERAL_H */
