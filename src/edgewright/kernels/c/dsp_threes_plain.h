/* ew_dsp_plain for three pixels. */
#ifndef EW_DSP_THREES_PLAIN_H
#define EW_DSP_THREES_PLAIN_H

#include "dsp_threes.h"

ew_dsp_threes ew_dsp_threes_plain;

#endif /* EW_DSP_THREES_PLAIN_H */
