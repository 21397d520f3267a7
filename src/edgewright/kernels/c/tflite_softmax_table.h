/* Softmax of eight-bit lines as TFLite's reference kernels compute it, with the exponentials from a table. */
#ifndef EW_TFLITE_SOFTMAX_TABLE_H
#define EW_TFLITE_SOFTMAX_TABLE_H

#include "tflite_exp.h"

typedef struct {
    int32_t size;           /* elements of a line */
    int32_t x_step, y_step; /* from element to element */
    int32_t flip;           /* 0x80 for signed bytes: with that bit turned, order is that of unsigned ones */
    uint32_t count;         /* of exponentials; what is farther below the largest element has none */
    const int32_t *exps;    /* by the distance to the largest element, Q0 */
} ew_softmax_table_line;

/* Elements first..last of the softmax of the line x; y is the whole line's place. */
void ew_softmax_table(const ew_softmax_table_line *p, const uint8_t *x, uint8_t *y, int32_t first, int32_t last);

#endif /* EW_TFLITE_SOFTMAX_TABLE_H */
