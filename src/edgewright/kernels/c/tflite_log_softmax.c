#include "tflite_log_softmax.h"

/* log(x) as Q5, for x >= 1 as Q12: x = 2^k * r, then a rational function of r around 2^-1/4. Of the two ways to choose
 * k (r near 2^-1/2 or near 1) the one that leaves r closer to the middle is taken. */
static int32_t ew_log_of_q12(int32_t x)
{
    const int32_t one = 1 << 25, quarter = 1 << 23; /* Q6: one bit more than the result has, against saturation */
    const int32_t root = 1518500250;                /* 2^-1/2 */
    const int32_t middle = 1805811301;              /* 2^-1/4 */
    const int32_t zeros_a = ew_leading_zeros(x);
    const int32_t zeros_b = ew_leading_zeros(ew_high_multiply(x, root)) - 1;
    const int32_t r_a = ew_shift_left(ew_high_multiply(ew_shift_left(x, zeros_a - 1), root), 1);
    const int32_t r = ew_min(r_a, ew_shift_left(x, zeros_b));
    const int32_t k = ew_max((12 - zeros_a) * one + quarter, (12 - zeros_b) * one - quarter);
    const int32_t p = (int32_t)(((int64_t)r + middle + 1) >> 1);
    const int32_t q = 2 * (r - middle);
    const int32_t q2 = ew_high_multiply(q, q);
    const int32_t numerator = ew_high_multiply(q, r) + ew_high_multiply(ew_high_multiply(q, q2), 117049297);
    const int32_t inner = 1057819769 + q + ew_high_multiply(q2, 127690142);
    const int32_t inverse = ew_one_over_one_plus(ew_high_multiply(p, inner) + ew_high_multiply(q, 638450708));
    const int32_t log_2 = 1488522236;
    return ew_shift_left(
        ew_high_multiply(k, log_2) + ew_high_multiply(ew_divide_by_power(numerator, 6), inverse), 1);
}

void ew_log_softmax(const ew_softmax_line *p, int32_t back, int32_t back_shift, const uint8_t *x, uint8_t *y,
                    int32_t first, int32_t last)
{
    const int32_t largest = ew_line_largest(p, x);
    int32_t total = 0, log_sum, least;
    for (int32_t i = 0; i < p->size; i++)
        total += ew_divide_by_power(ew_line_exp(p, (x[i * p->x_step] ^ p->flip) - largest), 12);
    log_sum = ew_log_of_q12(total);
    least = ew_max(p->least - 1, ew_multiply(log_sum + INT32_MIN, back, back_shift));
    for (int32_t i = first; i < last; i++) {
        const int32_t below = (x[i * p->x_step] ^ p->flip) - largest;
        int32_t value = 0;
        if (below > least) { /* the output's scale is 1/16: 26 bits behind the point less 4 */
            const int64_t log = (int64_t)ew_multiply(below, p->factor, p->shift) - log_sum;
            value = ew_between(0, 255 + ew_divide_by_power(log < INT32_MIN ? INT32_MIN : (int32_t)log, 22), 255);
        }
        y[i * p->y_step] = (uint8_t)(value ^ p->flip);
    }
}
