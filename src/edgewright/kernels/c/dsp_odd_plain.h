/* ew_dsp_plain for an odd number of channels. */
#ifndef EW_DSP_ODD_PLAIN_H
#define EW_DSP_ODD_PLAIN_H

#include "dsp_plain.h"
#include "dsp_odd.h"

ew_dsp_pairs ew_dsp_odd_plain;

#endif /* EW_DSP_ODD_PLAIN_H */
