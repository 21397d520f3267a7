/* L2 normalisation of eight-bit lines, as TFLite's reference kernels compute it. */
#ifndef EW_TFLITE_L2_H
#define EW_TFLITE_L2_H

#include "tflite_exp.h"

typedef struct {
    int32_t size;           /* elements of a line */
    int32_t x_step, y_step; /* from element to element */
    int32_t zero;           /* of the input, as an unsigned byte */
    uint8_t flip;           /* 0x80 for signed bytes */
} ew_l2_line;

/* Elements first..last of the line, each times 128 / its length. */
void ew_l2_normalize(const ew_l2_line *p, const uint8_t *x, uint8_t *y, int32_t first, int32_t last);

#endif /* EW_TFLITE_L2_H */
