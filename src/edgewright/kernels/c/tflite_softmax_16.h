/* Softmax of eight-bit lines into 16-bit ones, as the reference kernels of TFLite compute it. */
#ifndef EW_TFLITE_SOFTMAX_16_H
#define EW_TFLITE_SOFTMAX_16_H

#include "tflite_softmax.h"

/* Elements first..last of the softmax of the line x; y is the whole line's place. */
void ew_softmax_16(const ew_softmax_line *p, const uint8_t *x, int16_t *y, int32_t first, int32_t last);

#endif /* EW_TFLITE_SOFTMAX_16_H */
