/* Four channels whose results have the range of signed bytes and are rounded half up; x is signed. */
#ifndef EW_DSP_FOURS_PLAIN_H
#define EW_DSP_FOURS_PLAIN_H

#include "dsp_fours.h"

ew_dsp_fours ew_dsp_fours_plain;

#endif /* EW_DSP_FOURS_PLAIN_H */
