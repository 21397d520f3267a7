/* The part of <math.h> that emitted code uses: functions of float. */
#ifndef BOARD_MATH_H
#define BOARD_MATH_H

#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
#define isnan(x) __builtin_isnan(x)
#define isinf(x) __builtin_isinf(x)
#define isfinite(x) __builtin_isfinite(x)
#define signbit(x) __builtin_signbit(x)

#ifdef __cplusplus
extern "C" {
#endif
float ceilf(float x);
float copysignf(float x, float sign);
float cosf(float x);
float erff(float x);
float expf(float x);
float expm1f(float x);
float fabsf(float x);
float floorf(float x);
float fmaf(float x, float y, float z);
float fmaxf(float x, float y);
float fminf(float x, float y);
float log1pf(float x);
float logf(float x);
float powf(float x, float y);
float rintf(float x);
float roundf(float x);
float sinf(float x);
float sqrtf(float x);
float tanhf(float x);
float truncf(float x);
#ifdef __cplusplus
}
#endif

#endif
