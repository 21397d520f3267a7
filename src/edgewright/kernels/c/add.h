/* Sums of two int8 tensors with TFLite's arithmetic: both are brought to one finer scale, added, and brought to the
 * output's, each time rounded twice as the reference does. */
#ifndef EW_ADD_H
#define EW_ADD_H

#include "base.h"

/* A multiplier and the rounding shift behind it. `half` is what rounds, plus whatever else is added; `sign` is -1 where
 * the shift rounds half away from zero, 0 where there is none. */
typedef struct {
    int32_t multiplier, shift, half, sign;
} ew_rescale;

typedef struct {
    int32_t zero_a, zero_b; /* zero points, shifted as the operands are */
    ew_rescale b, out; /* a has the coarser scale of the two, which takes a shift only */
    int32_t low, high;
} ew_add;

/* n elements, in blocks from the first to the last, or from the last to the first when `backward`: each block is read
 * before it is written. */
void ew_add_int8(const ew_add *p, const int8_t *a, const int8_t *b, int8_t *y, int32_t n, int32_t backward);

#endif /* EW_ADD_H */
