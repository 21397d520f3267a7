#include "dsp_odd_plain.h"

EW_DSP_ODD(ew_dsp_odd_plain, ew_dsp_plain, EW_DSP_PLAIN)
