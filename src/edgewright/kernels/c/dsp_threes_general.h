/* ew_dsp_general for three pixels. */
#ifndef EW_DSP_THREES_GENERAL_H
#define EW_DSP_THREES_GENERAL_H

#include "dsp_threes.h"

ew_dsp_threes ew_dsp_threes_general;

#endif /* EW_DSP_THREES_GENERAL_H */
