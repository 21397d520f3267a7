#include "depthwise.h"

/* Few instructions that run often: compilers that make code small would fold them into their callers and spill. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__OPTIMIZE__)
#define EW_OFTEN __attribute__((noinline, optimize("O2")))
#elif defined(__GNUC__)
#define EW_OFTEN __attribute__((noinline))
#else
#define EW_OFTEN
#endif

/* Of a gathered number the upper byte is written, the lower one stays 0. */
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define EW_UPPER 0
#else
#define EW_UPPER 1
#endif

/* The upper bytes of a gathered row. By hand on Arm: compilers set up more than short rows are worth. */
EW_INLINE void ew_copy_row(const uint8_t *x, int32_t step, uint8_t *row, int32_t n)
{
#if defined(__thumb2__) && defined(__GNUC__)
    uint32_t a, b, c, d;
    __asm__ volatile("subs %[n], %[n], #4\n"
                     "blt 2f\n"
                     "1:\n"
                     "ldrb %[a], [%[x]]\n"
                     "ldrb %[b], [%[x], %[step]]\n"
                     "add %[x], %[x], %[step], lsl #1\n"
                     "ldrb %[c], [%[x]]\n"
                     "ldrb %[d], [%[x], %[step]]\n"
                     "add %[x], %[x], %[step], lsl #1\n"
                     "strb %[a], [%[row]], #2\n"
                     "strb %[b], [%[row]], #2\n"
                     "strb %[c], [%[row]], #2\n"
                     "strb %[d], [%[row]], #2\n"
                     "subs %[n], %[n], #4\n"
                     "bge 1b\n"
                     "2:\n"
                     "adds %[n], %[n], #4\n"
                     "beq 4f\n"
                     "3:\n"
                     "ldrb %[a], [%[x]]\n"
                     "add %[x], %[x], %[step]\n"
                     "strb %[a], [%[row]], #2\n"
                     "subs %[n], %[n], #1\n"
                     "bne 3b\n"
                     "4:\n"
                     : [a] "=&r"(a), [b] "=&r"(b), [c] "=&r"(c), [d] "=&r"(d), [x] "+r"(x), [row] "+r"(row), [n] "+r"(n)
                     : [step] "r"(step)
                     : "cc", "memory");
#else
    for (; n >= 4; n -= 4, row += 8, x += 4 * step) {
        const uint8_t a = x[0], b = x[step], c = x[2 * step], d = x[3 * step];
        row[0] = a;
        row[2] = b;
        row[4] = c;
        row[6] = d;
    }
    for (; n > 0; n--, row += 2, x += step)
        *row = *x;
#endif
}

EW_OFTEN static void ew_fill_row(uint8_t *row, int32_t n, int32_t value)
{
    for (; n > 0; n--, row += 2)
        *row = (uint8_t)value;
}

static void ew_flip_row(uint8_t *row, int32_t n)
{
    for (; n > 0; n--, row += 2)
        *row ^= 0x80;
}

/* A row of the image, which begins at `x`; padding where there is none. */
EW_INLINE void ew_gather_row(const ew_depthwise *p, const ew_lane *lane, const uint8_t *x)
{
    uint8_t *row = (uint8_t *)lane->top + lane->before;
    if (x) {
        ew_copy_row(x, p->x.pixel, row, lane->inside);
        if (p->flip_x)
            ew_flip_row(row, lane->inside);
    } else {
        ew_fill_row(row, lane->inside, p->zero);
    }
}

EW_INLINE void ew_nine_weights(const int8_t *w, int32_t left, int16_t *to)
{
    for (int32_t i = 0; i < 3; i++) {
        const int16_t a = (int16_t)(w[3 * i] * (1 << left)), b = (int16_t)(w[3 * i + 1] * (1 << left));
        to[4 * i] = a;
        to[4 * i + 1] = b;
        to[4 * i + 2] = b;
        to[4 * i + 3] = (int16_t)(w[3 * i + 2] * (1 << left));
    }
}

EW_OFTEN static void ew_spread_weights(const ew_depthwise *p, const int8_t *w, int16_t *to)
{
    const int32_t width = p->kernel_w, rest = p->taps - width;
    for (int32_t y = p->kernel_h; y > 0; y--) {
        for (const int8_t *end = w + width; w != end; w++)
            *to++ = *w;
        if (rest)
            *to++ = 0;
    }
}

/* What rows leave out: ranges smaller than the type's, unsigned types. */
static void ew_settle_row(const ew_depthwise *p, uint8_t *y, int32_t step, int32_t n)
{
    for (; n > 0; n--, y += step)
        *y = (uint8_t)(ew_between(p->low, (int8_t)*y, p->high) + p->flip_y);
}

/* One channel of a part through the ring. */
EW_OFTEN static void ew_run_ring(const ew_depthwise *p, ew_lane *lane, const uint8_t *x, uint8_t *y,
                                 const ew_image *image, const ew_part *part)
{
    int32_t next = part->top * p->stride_h - p->pad_h, until = next + p->kernel_h, from = lane->from, at = lane->at;
    lane->top = lane->ring;
    for (int32_t row = 0; row < part->bottom - part->top; row++, until += p->stride_h, at = ew_row_on(image, at, 1)) {
        uint8_t *to = y + at;
        for (; next < until; next++) {
            const int32_t is_inside = (uint32_t)next < (uint32_t)p->height;
            ew_gather_row(p, lane, is_inside ? x + from : NULL);
            if (is_inside)
                from = ew_row_on(&p->x, from, 1);
            lane->top = ew_ring_next(lane, lane->top);
        }
        p->row(p, lane, to);
        if (lane->settles)
            ew_settle_row(p, to, lane->step, lane->count);
    }
}

/* One channel of a part whose rows are all gathered first; padding is there already. */
EW_OFTEN static void ew_run_whole(const ew_depthwise *p, ew_lane *lane, const uint8_t *x, uint8_t *y,
                                  const ew_part *part)
{
    const int32_t top = part->top * p->stride_h - p->pad_h;
    const int32_t first = ew_max(0, top), last = ew_min(p->height, top + p->slots);
    uint8_t *row = (uint8_t *)(lane->ring + (first - top) * p->pitch) + lane->before;
    for (int32_t i = first; i < last; i++, row += 2 * p->pitch)
        ew_copy_row(x + ew_row(&p->x, i), p->x.pixel, row, lane->inside);
    for (int32_t i = first; p->flip_x && i < last; i++)
        ew_flip_row(row -= 2 * p->pitch, lane->inside);
    lane->rows = part->bottom - part->top;
    p->row(p, lane, y);
    for (int32_t i = 0; lane->settles && i < lane->rows; i++)
        ew_settle_row(p, y + i * lane->line, lane->step, lane->count);
}

/* Some channels of a part. The image of the outputs begins at `y`; the part's first row is row `origin` there. */
static void ew_run_lanes(const ew_depthwise *p, const uint8_t *x, uint8_t *y, const ew_image *image, int32_t origin,
                         const ew_part *part, int32_t first, int32_t last, int16_t *ring)
{
    const int32_t left = part->left * p->stride_w - p->pad_w, before = ew_between(0, -left, p->pitch);
    int16_t *weights = ring + p->slots * p->pitch;
    ew_lane lane;
    memset(ring, 0, (uint32_t)(2 * p->slots * p->pitch));
    ew_fill_row((uint8_t *)ring + EW_UPPER, p->slots * p->pitch, p->zero);
    lane.weights = weights;
    lane.ring = lane.top = ring;
    lane.end = weights;
    lane.pitch = p->pitch;
    lane.step = image->pixel;
    lane.count = part->right - part->left;
    lane.shift = p->shift;
    lane.down = p->stride_h * p->pitch;
    lane.line = image->row;
    lane.rows = 1;
    lane.at = ew_row(image, origin);
    lane.from = ew_row(&p->x, ew_max(0, part->top * p->stride_h - p->pad_h));
    lane.start = lane.drop = 0;
    lane.before = 2 * before + EW_UPPER;
    lane.inside = ew_max(0, ew_min(p->width - left, p->pitch) - before);
    lane.settles = p->low > -128 || p->high < 127 || p->flip_y;
    if (lane.count <= 0)
        return;
    if (lane.inside > 0)
        x += (left + before) * p->x.pixel;
    int32_t source = first / p->multiplier, rest = (source + 1) * p->multiplier - first; /* that still read it */
    for (int32_t channel = first; channel < last; channel++, y++, rest--) {
        const int32_t *factors = p->factors + p->factor_count * channel;
        const int8_t *w = p->weights + channel * p->kernel_h * p->kernel_w;
        lane.multiplier = factors[0];
        lane.offset = factors[1];
        if (p->factor_count == 3) {
            lane.shift = factors[2];
        } else if (p->factor_count == 4) {
            lane.start = factors[2];
            lane.drop = factors[3];
        }
        if (p->taps)
            ew_spread_weights(p, w, weights);
        else
            ew_nine_weights(w, p->left, lane.nine);
        if (rest == 0) {
            source++;
            rest = p->multiplier;
        }
        if (p->slots > p->kernel_h)
            ew_run_whole(p, &lane, x + source, y + lane.at, part);
        else
            ew_run_ring(p, &lane, x + source, y, image, part);
    }
}

void ew_depthwise_run(const ew_depthwise *p, const uint8_t *x, uint8_t *y, const ew_part *part, int32_t first,
                      int32_t last, int16_t *scratch)
{
    ew_run_lanes(p, x, y + part->left * p->y.pixel + first, &p->y, part->top, part, first, last, scratch);
}

void ew_depthwise_shared(const ew_depthwise *p, const uint8_t *x, uint8_t *y, const ew_part *part, int32_t first,
                         int32_t last, const ew_blocks *blocks, int16_t *scratch)
{
    const int32_t size = last - first;
    uint8_t *kept = (uint8_t *)(scratch + p->slots * p->pitch + p->kernel_h * p->taps);
    const ew_image image = {blocks->columns * size, size, 0};
    for (int32_t i = 0; i < part->bottom - part->top; i += blocks->rows)
        for (int32_t j = 0; j < part->right - part->left; j += blocks->columns) {
            ew_part few = {part->top + i, part->bottom, part->left + j, part->right};
            if (blocks->backward) {
                few.top = ew_max(part->top, part->bottom - i - blocks->rows);
                few.bottom = part->bottom - i;
                few.left = ew_max(part->left, part->right - j - blocks->columns);
                few.right = part->right - j;
            } else {
                few.bottom = ew_min(few.bottom, few.top + blocks->rows);
                few.right = ew_min(few.right, few.left + blocks->columns);
            }
            if (blocks->rows == 1 && blocks->columns == 1) {
                ew_depthwise_run(p, x, y, &few, first, last, scratch);
                continue;
            }
            ew_run_lanes(p, x, kept, &image, 0, &few, first, last, scratch);
            for (int32_t row = few.top; row < few.bottom; row++)
                for (int32_t column = few.left; column < few.right; column++)
                    memcpy(y + ew_row(&p->y, row) + column * p->y.pixel + first,
                           kept + (row - few.top) * image.row + (column - few.left) * size, (uint32_t)size);
        }
}
