#include "simd_math.h"

/* One loop for each kind, so that none decides anything per number. */
void ew_simd_activate(float *y, int32_t n, int32_t kind, float a, float b)
{
    switch (kind) {
    case EW_SIMD_LEAKY:
        ew_simd_activate_as(y, n, EW_SIMD_LEAKY, a, b);
        break;
    case EW_SIMD_ELU:
        ew_simd_activate_as(y, n, EW_SIMD_ELU, a, b);
        break;
    case EW_SIMD_HARD_SIGMOID:
        ew_simd_activate_as(y, n, EW_SIMD_HARD_SIGMOID, a, b);
        break;
    case EW_SIMD_SIGMOID:
        ew_simd_activate_as(y, n, EW_SIMD_SIGMOID, a, b);
        break;
    case EW_SIMD_SILU:
        ew_simd_activate_as(y, n, EW_SIMD_SILU, a, b);
        break;
    case EW_SIMD_HARD_SWISH:
        ew_simd_activate_as(y, n, EW_SIMD_HARD_SWISH, a, b);
        break;
    case EW_SIMD_TANH:
        ew_simd_activate_as(y, n, EW_SIMD_TANH, a, b);
        break;
    case EW_SIMD_CLAMP:
        ew_simd_activate_as(y, n, EW_SIMD_CLAMP, a, b);
        break;
    default:
        break;
    }
}
