/* Mathematics of float without a C library, right to two units in the last place. Chips that have a library of their
 * own use that. The reductions and coefficients are those of Sun's fdlibm (exp, log), Cephes (sin, cos) and
 * N. Juffa (erf). */
#include <math.h>
#include <stdint.h>
#include <string.h>

static const float LN2_HIGH = 6.9314575195e-01f, LN2_LOW = 1.4286067653e-06f, PER_LN2 = 1.4426950216e+00f;

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, 4);
    return bits;
}

static float of_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, 4);
    return x;
}

static float power_of_two(int32_t n) { return of_bits((uint32_t)(n + 127) << 23); } /* -127 < n < 128 */

static float scaled(float x, int32_t n) /* x * 2^n in steps that do not overflow on the way */
{
    if (n > 127) {
        x *= power_of_two(127);
        n -= 127;
    } else if (n < -126) {
        x *= power_of_two(-100);
        n += 100;
    }
    return n > 127 ? x * INFINITY : n < -126 ? x * 0.0f : x * power_of_two(n);
}

float fabsf(float x) { return of_bits(bits_of(x) & 0x7FFFFFFFu); }
float copysignf(float x, float sign) { return of_bits((bits_of(x) & 0x7FFFFFFFu) | (bits_of(sign) & 0x80000000u)); }
float fmaf(float x, float y, float z) { return (float)((double)x * (double)y + (double)z); }
float fminf(float x, float y) { return x != x || y < x ? y : x; }
float fmaxf(float x, float y) { return x != x || y > x ? y : x; }

/* From 2^23 on every float is whole, and NaN stays NaN. */
static int32_t is_whole(float x) { return !(fabsf(x) < 8388608.0f); }

float truncf(float x) { return is_whole(x) ? x : copysignf((float)(int32_t)x, x); }

float floorf(float x)
{
    const float t = truncf(x);
    return t > x ? t - 1.0f : t;
}

float ceilf(float x)
{
    const float t = truncf(x);
    return t < x ? copysignf(t + 1.0f, x) : t;
}

float roundf(float x)
{
    const float t = truncf(x);
    return fabsf(x - t) >= 0.5f ? t + copysignf(1.0f, x) : t;
}

float rintf(float x) /* half to even */
{
    const float t = truncf(x), rest = fabsf(x - t);
    const int32_t odd = is_whole(x) ? 0 : (int32_t)t & 1;
    return rest > 0.5f || (rest == 0.5f && odd) ? t + copysignf(1.0f, x) : t;
}

float sqrtf(float x)
{
#if (defined(__ARM_FP) && (__ARM_FP & 4)) || defined(__riscv_flen)
    return __builtin_sqrtf(x);
#else
    uint32_t bits = bits_of(x), root = 0, rest, bit;
    int32_t exponent;
    if (x == 0.0f || bits == 0x7F800000u || x != x)
        return x;
    if (bits >> 31)
        return NAN;
    if (bits < 0x00800000u) { /* subnormal: 2^24 times as large */
        bits = bits_of(x * 16777216.0f);
        exponent = (int32_t)(bits >> 23) - 24;
    } else {
        exponent = (int32_t)(bits >> 23);
    }
    rest = (bits & 0x7FFFFFu) | 0x800000u;
    exponent -= 127;
    if (exponent & 1)
        rest <<= 1;
    exponent = (exponent - (exponent & 1)) / 2;
    rest <<= 1;
    /* A digit of the root at a time, one more than it has, to round by. */
    {
        uint32_t sum = 0;
        for (bit = 0x01000000u; bit; bit >>= 1) {
            const uint32_t next = sum + bit;
            if (next <= rest) {
                sum = next + bit;
                rest -= next;
                root += bit;
            }
            rest <<= 1;
        }
    }
    if (rest != 0)
        root += root & 1u;
    return of_bits((root >> 1) + ((uint32_t)(exponent + 126) << 23));
#endif
}

float expf(float x)
{
    float high, low, t, c;
    int32_t k;
    if (x != x)
        return x;
    if (x > 88.8f)
        return INFINITY;
    if (x < -104.0f)
        return 0.0f;
    k = (int32_t)(x * PER_LN2 + (x < 0.0f ? -0.5f : 0.5f));
    high = x - (float)k * LN2_HIGH;
    low = (float)k * LN2_LOW;
    x = high - low;
    t = x * x;
    c = x - t * (1.6666625440e-1f - 2.7667332906e-3f * t);
    return scaled(1.0f - ((low - (x * c) / (2.0f - c)) - high), k);
}

float expm1f(float x)
{
    float c = 0.0f, half, square, r, t, e, y;
    int32_t k = 0;
    if (x != x || fabsf(x) < 2.9802322e-8f)
        return x;
    if (x > 88.8f)
        return INFINITY;
    if (x < -17.5f)
        return -1.0f;
    if (fabsf(x) > 0.34657359f) {
        float high, low;
        k = (int32_t)(x * PER_LN2 + (x < 0.0f ? -0.5f : 0.5f));
        high = x - (float)k * LN2_HIGH;
        low = (float)k * LN2_LOW;
        x = high - low;
        c = (high - x) - low;
    }
    half = 0.5f * x;
    square = x * half;
    r = 1.0f + square * (-3.3333212137e-2f + square * 1.5807170421e-3f);
    t = 3.0f - r * half;
    e = square * ((r - t) / (6.0f - x * t));
    if (k == 0)
        return x - (x * e - square);
    e = x * (e - c) - c;
    e -= square;
    if (k == -1)
        return 0.5f * (x - e) - 0.5f;
    if (k == 1)
        return x < -0.25f ? -2.0f * (e - (x + 0.5f)) : 1.0f + 2.0f * (x - e);
    if (k < 0 || k > 56)
        return scaled(x - e + 1.0f, k) - 1.0f;
    y = k < 23 ? x - e + (1.0f - power_of_two(-k)) : x - (e + power_of_two(-k)) + 1.0f;
    return scaled(y, k);
}

/* log(1 + f) of a mantissa, without the leading f - f^2/2: s * (f^2/2 + R). */
static float log_tail(float f, float half_square)
{
    const float s = f / (2.0f + f), z = s * s, w = z * z;
    const float odd = w * (0.40000972152f + w * 0.24279078841f);
    const float even = z * (0.66666662693f + w * 0.28498786688f);
    return s * (half_square + even + odd);
}

static const float LOG_HIGH = 6.9313812256e-01f, LOG_LOW = 9.0580006145e-06f; /* their product with an exponent is exact */

float logf(float x)
{
    uint32_t bits;
    int32_t k = 0;
    float f, half;
    if (x == 0.0f)
        return -INFINITY;
    if (x < 0.0f)
        return NAN;
    if (x != x || x == INFINITY)
        return x;
    if (x < 1.17549435e-38f) {
        x *= 33554432.0f;
        k = -25;
    }
    bits = bits_of(x) + (0x3F800000u - 0x3F3504F3u); /* mantissas from sqrt(1/2) to sqrt(2) */
    k += (int32_t)(bits >> 23) - 127;
    f = of_bits((bits & 0x7FFFFFu) + 0x3F3504F3u) - 1.0f;
    half = 0.5f * f * f;
    return log_tail(f, half) + (float)k * LOG_LOW - half + f + (float)k * LOG_HIGH;
}

float log1pf(float x)
{
    float f = x, c = 0.0f, half;
    int32_t k = 0;
    if (x == -1.0f)
        return -INFINITY;
    if (x < -1.0f)
        return NAN;
    if (x != x || x == INFINITY || fabsf(x) < 5.9604645e-8f)
        return x;
    if (x > 0.41421356f || x < -0.29289323f) {
        const float u = 1.0f + x;
        uint32_t bits = bits_of(u) + (0x3F800000u - 0x3F3504F3u);
        k = (int32_t)(bits >> 23) - 127;
        if (k < 25) /* what the sum has lost */
            c = (k >= 2 ? 1.0f - (u - x) : x - (u - 1.0f)) / u;
        f = of_bits((bits & 0x7FFFFFu) + 0x3F3504F3u) - 1.0f;
    }
    half = 0.5f * f * f;
    return log_tail(f, half) + ((float)k * LOG_LOW + c) - half + f + (float)k * LOG_HIGH;
}

float tanhf(float x)
{
    const float a = fabsf(x);
    float t;
    if (x != x || a < 1.0e-4f)
        return x;
    if (a > 10.0f)
        t = 1.0f;
    else if (a > 0.54930614f)
        t = 1.0f - 2.0f / (expm1f(2.0f * a) + 2.0f);
    else if (a > 0.25541281f) {
        t = expm1f(2.0f * a);
        t = t / (t + 2.0f);
    } else {
        t = expm1f(-2.0f * a);
        t = -t / (t + 2.0f);
    }
    return copysignf(t, x);
}

float erff(float x)
{
    const float t = fabsf(x), s = x * x;
    float r, u;
    if (x != x)
        return x;
    if (t > 4.0f)
        return copysignf(1.0f, x);
    if (t > 0.927734375f) {
        r = -1.72853470e-5f * t + 3.83197126e-4f;
        u = -3.88396438e-3f * t + 2.42546219e-2f;
        r = r * s + u;
        r = r * t - 1.06777877e-1f;
        r = r * t - 6.34846687e-1f;
        r = r * t - 1.28717512e-1f;
        r = r * t - t;
        return copysignf(1.0f - expf(r), x);
    }
    r = -5.96761703e-4f;
    r = r * s + 4.99119423e-3f;
    r = r * s - 2.67681349e-2f;
    r = r * s + 1.12819925e-1f;
    r = r * s - 3.76125336e-1f;
    r = r * s + 1.28379166e-1f;
    return r * x + x;
}

/* The quadrant of x, and its distance from the middle of that: in double, so that large angles keep their digits. */
static int32_t quadrant(float x, float *rest)
{
    const double turns = (double)x * 0.63661977236758134;
    const int32_t n = (int32_t)(turns + (turns < 0.0 ? -0.5 : 0.5));
    *rest = (float)(((double)x - n * 1.5707963267341256) - n * 6.0771005065061922e-11);
    return n;
}

static float sine(float x)
{
    const float z = x * x;
    return ((-1.9515295891e-4f * z + 8.3321608736e-3f) * z - 1.6666654611e-1f) * z * x + x;
}

static float cosine(float x)
{
    const float z = x * x;
    return ((2.443315711809948e-5f * z - 1.388731625493765e-3f) * z + 4.166664568298827e-2f) * z * z - 0.5f * z + 1.0f;
}

static float turned(float x, int32_t quarters)
{
    float rest, y;
    int32_t n;
    if (!(fabsf(x) < 1.0e9f)) /* no digit of the angle is left */
        return fabsf(x) < INFINITY ? (quarters ? 1.0f : 0.0f) : NAN;
    n = (int32_t)((uint32_t)quadrant(x, &rest) + (uint32_t)quarters) & 3;
    y = n & 1 ? cosine(rest) : sine(rest);
    return n & 2 ? -y : y;
}

float sinf(float x) { return turned(x, 0); }
float cosf(float x) { return turned(x, 1); }

/* In double: the logarithm is multiplied by up to 2^7, and its error with it. */
static double log_wide(float x)
{
    int32_t k = 0;
    uint32_t bits;
    double f, s, z, sum;
    if (x < 1.17549435e-38f) {
        x *= 33554432.0f;
        k = -25;
    }
    bits = bits_of(x) + (0x3F800000u - 0x3F3504F3u);
    k += (int32_t)(bits >> 23) - 127;
    f = (double)of_bits((bits & 0x7FFFFFu) + 0x3F3504F3u) - 1.0;
    s = f / (2.0 + f);
    z = s * s;
    sum = 1.0 + z * (1.0 / 3 + z * (1.0 / 5 + z * (1.0 / 7 + z * (1.0 / 9 + z * (1.0 / 11 + z / 13)))));
    return 2.0 * s * sum + k * 0.69314718055994531;
}

static float exp_wide(double x)
{
    double sum;
    int32_t k;
    if (x > 89.0)
        return INFINITY;
    if (x < -104.0)
        return 0.0f;
    k = (int32_t)(x * 1.4426950408889634 + (x < 0.0 ? -0.5 : 0.5));
    x -= k * 0.69314718055994531;
    sum = 1.0 + x * (1.0 + x / 2 * (1.0 + x / 3 * (1.0 + x / 4 * (1.0 + x / 5 * (1.0 + x / 6 * (1.0 + x / 7))))));
    return scaled((float)sum, k);
}

float powf(float x, float y)
{
    const int32_t whole = truncf(y) == y;
    const int32_t odd = whole && fabsf(y) < 16777216.0f && ((int32_t)y & 1);
    const float a = fabsf(x), sign = odd && (bits_of(x) >> 31) ? -1.0f : 1.0f;
    if (y == 0.0f || x == 1.0f)
        return 1.0f;
    if (x != x || y != y)
        return x + y;
    if (fabsf(y) == INFINITY)
        return a == 1.0f ? 1.0f : (a > 1.0f) == (y > 0.0f) ? INFINITY : 0.0f;
    if (a == 0.0f || a == INFINITY)
        return sign * ((a == 0.0f) == (y > 0.0f) ? 0.0f : INFINITY);
    if (x < 0.0f && !whole)
        return NAN;
    return sign * exp_wide((double)y * log_wide(a));
}
