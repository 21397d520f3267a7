/* Real numbers stored in eight bits as they come: how an item is stored follows from its least and largest number. */
#ifndef EW_DYNAMIC_H
#define EW_DYNAMIC_H

#include "fixed.h"

/* The nearest whole number to a double of at most a few hundred, halves away from zero. */
static inline float ew_nearest(double value)
{
    return (float)(int32_t)(value + (value < 0 ? -0.5 : 0.5));
}

/* Scale, inverse and zero point for -127..127 about 0. */
static inline void ew_range_symmetric(float low, float high, float *found)
{
    float reach = high > -high ? high : -high;
    const float other = low > -low ? low : -low;
    if (other > reach)
        reach = other;
    found[0] = reach == 0.0f ? 1.0f : reach / 127.0f;
    found[1] = reach == 0.0f ? 127.0f : 127.0f / reach;
    found[2] = 0.0f;
}

/* The same for -128..127 about a zero point, which is that of the end at which it rounds less. */
static inline void ew_range_asymmetric(float low, float high, float *found)
{
    low = low < 0.0f ? low : 0.0f;
    high = high > 0.0f ? high : 0.0f;
    found[0] = found[1] = 1.0f;
    found[2] = 0.0f;
    if (low != high) {
        const double step = (double)(high - low) / 255.0, least = (double)low / step, most = (double)high / step;
        const double zero = 128.0 - least < 127.0 + most ? -128.0 - least : 127.0 - most;
        found[0] = (float)step;
        found[1] = 1.0f / found[0];
        found[2] = zero <= -128.0 ? -128.0f : zero >= 127.0 ? 127.0f : ew_nearest(zero);
    }
}

/* As ONNX has it: halves to even, all in float; the zero point is that of int8. */
static inline void ew_range_even(float low, float high, float *found)
{
    low = low < 0.0f ? low : 0.0f;
    high = high > 0.0f ? high : 0.0f;
    found[0] = low == high ? 1.0f : (high - low) / 255.0f;
    found[1] = 1.0f / found[0];
    found[2] = (float)(ew_round_even(-low / found[0], 0.0f, 255.0f) - 128);
}

#endif /* EW_DYNAMIC_H */
