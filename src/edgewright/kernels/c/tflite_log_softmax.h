/* Log-softmax of eight-bit lines, as TFLite's reference kernels compute it. */
#ifndef EW_TFLITE_LOG_SOFTMAX_H
#define EW_TFLITE_LOG_SOFTMAX_H

#include "tflite_softmax.h"

/* Elements first..last of the line; `back` and `back_shift` undo the scaling of differences. */
void ew_log_softmax(const ew_softmax_line *p, int32_t back, int32_t back_shift, const uint8_t *x, uint8_t *y,
                    int32_t first, int32_t last);

#endif /* EW_TFLITE_LOG_SOFTMAX_H */
