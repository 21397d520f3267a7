#include "tflite_divide.h"

int32_t ew_quotient(int32_t a, int32_t b, int32_t factor, int32_t shift)
{
    int32_t power, room, quotient, exponent;
    const int32_t inverse = ew_reciprocal_of(ew_max(b < 0 ? -b : b, 1), 31, &power);
    a = b < 0 ? -a : a;
    if (a == 0)
        return 0;
    room = a < 0 ? ew_leading_zeros(-2 * a - 1) : ew_leading_zeros(a) - 1; /* the dividend moved up as far as it goes */
    quotient = ew_high_multiply((int32_t)((uint32_t)a << room), inverse);
    exponent = power + room - shift;
    return exponent > 31 ? 0 : ew_divide_by_power(ew_high_multiply(quotient, factor), exponent);
}
