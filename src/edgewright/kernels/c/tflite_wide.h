/* Functions of 16-bit numbers by tables with interpolation, as TFLite's reference kernels compute them. */
#ifndef EW_TFLITE_WIDE_H
#define EW_TFLITE_WIDE_H

#include "base.h"

/* Between two of 513 values: the upper 9 bits choose them, the lower 7 say how far. */
static inline int16_t ew_interpolated(int32_t x, const int16_t *table)
{
    const int32_t i = 256 + (x >> 7);
    const int16_t slope = (int16_t)(table[i + 1] - table[i]);
    return (int16_t)(table[i] + ((slope * (x & 0x7f) + 64) >> 7));
}

/* x * factor / 2^shift, rounded half up: 16-bit input in steps of 1 / (3 * 4096). */
static inline int32_t ew_wide_scaled(int32_t x, int32_t factor, int32_t shift)
{
    return (int32_t)(((int64_t)x * factor + (((int64_t)1 << shift) >> 1)) >> shift);
}

/* `table`: sigmoid(i / 24) with 16 bits. */
static inline int16_t ew_wide_sigmoid(int32_t x, const uint16_t *table)
{
    const int32_t size = x < 0 ? -x : x, i = size >> 9;
    int32_t value = 0x7fff << 10;
    if (i < 255)
        value = table[i] * 512 + (size & 0x1ff) * (table[i + 1] - table[i]);
    return (int16_t)((x < 0 ? (1 << 25) - value + (1 << 9) - 1 : value + (1 << 9)) >> 10);
}

/* 2 * sigmoid(2 * x) - 1, from the same table. */
static inline int16_t ew_wide_tanh(int32_t x, const uint16_t *table)
{
    const int32_t size = x < 0 ? -x : x, i = size >> 8;
    int32_t value = 0xffff << 8;
    if (i < 255)
        value = table[i] * 256 + (size & 0xff) * (table[i + 1] - table[i]);
    value -= 1 << 23;
    return (int16_t)((x < 0 ? -value + (1 << 7) - 1 : value + (1 << 7)) >> 8);
}

#endif /* EW_TFLITE_WIDE_H */
