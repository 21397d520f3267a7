/* Softmax of 16-bit lines, as TFLite's reference kernels compute it. */
#ifndef EW_TFLITE_WIDE_SOFTMAX_H
#define EW_TFLITE_WIDE_SOFTMAX_H

#include "tflite_exp.h"
#include "tflite_wide.h"

typedef struct {
    int32_t size;               /* elements of a line */
    int32_t x_step, y_step;     /* from element to element */
    int32_t factor, shift;      /* differences to the largest element, to steps of 10 / 65535 */
    const int16_t *exps;        /* exp over -10..0 */
    const int16_t *reciprocals; /* 1 / (1 + x) over 0..1 */
} ew_wide_softmax_line;

/* Elements first..last of the softmax of the line x; y is the whole line's place. */
void ew_wide_softmax(const ew_wide_softmax_line *p, const int16_t *x, int16_t *y, int32_t first, int32_t last);

#endif /* EW_TFLITE_WIDE_SOFTMAX_H */
