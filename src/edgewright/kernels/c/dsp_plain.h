/* Pairs of channels whose results have the range of signed bytes and are rounded half up. */
#ifndef EW_DSP_PLAIN_H
#define EW_DSP_PLAIN_H

#include "dsp_pairs.h"

ew_dsp_pairs ew_dsp_plain;

#endif /* EW_DSP_PLAIN_H */
