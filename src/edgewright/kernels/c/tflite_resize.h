/* Bilinear interpolation between four corners, as TFLite's reference kernels compute it: upper left, upper right,
 * lower left, lower right, and how far down and to the right the point lies. */
#ifndef EW_TFLITE_RESIZE_H
#define EW_TFLITE_RESIZE_H

#include "base.h"

/* Distances in 1/1024; rounded half away from zero. */
static inline int32_t ew_bilinear_fixed(int32_t a, int32_t b, int32_t c, int32_t d, int32_t dy, int32_t dx)
{
    const int32_t total = (a * (1024 - dx) + b * dx) * (1024 - dy) + (c * (1024 - dx) + d * dx) * dy;
    return total < 0 ? -((-total + (1 << 19)) >> 20) : (total + (1 << 19)) >> 20;
}

/* The same for 16-bit values. */
static inline int32_t ew_bilinear_wide(int32_t a, int32_t b, int32_t c, int32_t d, int32_t dy, int32_t dx)
{
    const int64_t upper = a * (1024 - dx) + b * dx, lower = c * (1024 - dx) + d * dx;
    const int64_t total = upper * (1024 - dy) + lower * dy;
    return (int32_t)(total < 0 ? -((-total + (1 << 19)) >> 20) : (total + (1 << 19)) >> 20);
}

/* In float, term by term in the order of the reference kernel; half is added and the rest cut off. */
static inline int32_t ew_bilinear_float(int32_t a, int32_t b, int32_t c, int32_t d, float dy, float dx)
{
    float total = (float)a * (1.0f - dy) * (1.0f - dx);
    total += (float)c * dy * (1.0f - dx);
    total += (float)b * (1.0f - dy) * dx;
    total += (float)d * dy * dx;
    return (int32_t)(total + 0.5f);
}

#endif /* EW_TFLITE_RESIZE_H */
