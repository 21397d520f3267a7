/* Quotients of small integers, as TFLite's reference kernels compute them. */
#ifndef EW_TFLITE_DIVIDE_H
#define EW_TFLITE_DIVIDE_H

#include "tflite_exp.h"

/* a / b * factor * 2^(shift - 31), rounded. */
int32_t ew_quotient(int32_t a, int32_t b, int32_t factor, int32_t shift);

#endif /* EW_TFLITE_DIVIDE_H */
