/* Small functions that name their argument once. */
#ifndef EW_TFLITE_SQUARE_H
#define EW_TFLITE_SQUARE_H

#include "base.h"

static inline int32_t ew_squared(int32_t x) { return x * x; }
static inline int32_t ew_size(int32_t x) { return x < 0 ? -x : x; }

#endif /* EW_TFLITE_SQUARE_H */
