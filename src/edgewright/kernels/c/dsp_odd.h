/* An odd number of channels by kernels for pairs: the first pair is (0, 1) and the second one (1, 2). A single channel
 * has a partner whose results nobody takes. */
#ifndef EW_DSP_ODD_H
#define EW_DSP_ODD_H

#include "dsp_pairs.h"

#define EW_DSP_ODD(name, pairs, kind) \
    void name(const ew_dsp_work *work, const uint32_t *columns, uint8_t *one, uint8_t *two) \
    { \
        ew_dsp_work part = *work; \
        part.count = 2; \
        if (work->count == 1) { \
            uint8_t first[2], second[2]; \
            pairs(&part, columns, first, second); \
            *one = first[0]; \
            *two = second[0]; \
            return; \
        } \
        pairs(&part, columns, one, two); \
        part.count = work->count - 1; \
        part.weights += EW_DSP_PITCH(work); \
        part.channels += 2 * (kind); \
        pairs(&part, columns, one + 1, two + 1); \
    }

#endif /* EW_DSP_ODD_H */
