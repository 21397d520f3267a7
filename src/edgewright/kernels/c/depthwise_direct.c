#include "depthwise_direct.h"

/* Runs most of the time. Scheduling before registers are given away would need more of them than there are. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__OPTIMIZE__)
#define EW_DIRECT_HOT __attribute__((noinline, optimize("O2", "no-schedule-insns", "no-tree-ch", "no-ivopts")))
#else
#define EW_DIRECT_HOT
#endif
#if defined(__GNUC__)
#define EW_DIRECT_AS_IS(v) __asm__("" : "+r"(v)) /* else compilers cut off bits that a store of a byte ignores */
#else
#define EW_DIRECT_AS_IS(v) ((void)0)
#endif

/* What a column of the window adds to a sum. */
#define EW_DIRECT_COLUMN(i) (c0 * w##i + c1 * w3##i + c2 * w6##i)

/* Stores an output; a test that hardly ever holds is cheaper than two. */
#define EW_DIRECT_STORE(sum)                                                                                          \
    v = ew_high_add(sum, multiplier, offset) >> shift;                                                                \
    if ((uint32_t)v + 128u > 255u)                                                                                    \
        v = v < 0 ? -128 : 127;                                                                                       \
    EW_DIRECT_AS_IS(v);                                                                                               \
    *y = (uint8_t)v;                                                                                                  \
    y += step

/* The next column. Where rows lie outside, a byte of padding is read again and again. */
#define EW_DIRECT_LOAD()                                                                                              \
    c0 = *r0;                                                                                                         \
    c1 = *r1;                                                                                                         \
    c2 = *r2;                                                                                                         \
    if (has_line)                                                                                                     \
        *r0 = (int8_t)c1;                                                                                             \
    r0 += has_line ? 1 : n0;                                                                                          \
    r1 += n1;                                                                                                         \
    r2 += n2

EW_INLINE void ew_direct_plane(const ew_direct *layer, ew_direct_lane *channel, int32_t stride, int32_t has_line)
{
    ew_direct_lane *volatile kept = channel; /* not in a register: weights need them all */
    ew_direct_lane *lane = kept;
    const ew_direct *const p = layer;
    const int8_t *w = lane->weights;
    const int32_t left = p->left, n1 = p->x.pixel, step = lane->image->pixel;
    const int32_t w0 = w[0] * (1 << left), w1 = w[1] * (1 << left), w2 = w[2] * (1 << left), w30 = w[3] * (1 << left);
    const int32_t w31 = w[4] * (1 << left), w32 = w[5] * (1 << left), w60 = w[6] * (1 << left);
    const int32_t w61 = w[7] * (1 << left), w62 = w[8] * (1 << left);
    const int32_t multiplier = lane->factors[0], offset = lane->factors[1], shift = lane->shift;
    for (int32_t row = 0, top = lane->top, at = lane->at;; top += stride) {
        int8_t *r0 = has_line ? lane->line : &lane->zero, *r1 = lane->x + ew_row(&p->x, top + 1), *r2 = &lane->zero;
        uint8_t *y = lane->y + at;
        int32_t n0 = 0, n2 = 0, next = 0, v, c0, c1, c2, last;
        if (!has_line && top >= 0) {
            r0 = lane->x + ew_row(&p->x, top);
            n0 = n1;
        }
        if (top + 2 < p->height) {
            r2 = lane->x + ew_row(&p->x, top + 2);
            n2 = n1;
        }
        c0 = c1 = c2 = lane->zero;
        if (!lane->leaves_left) {
            EW_DIRECT_LOAD();
        }
        last = EW_DIRECT_COLUMN(0);
        if (stride == 1) {
            EW_DIRECT_LOAD();
            next = last + EW_DIRECT_COLUMN(1);
            last = EW_DIRECT_COLUMN(0);
            for (uint8_t *const end = y + lane->inner * step; y != end;) {
                EW_DIRECT_LOAD();
                v = next + EW_DIRECT_COLUMN(2);
                next = last + EW_DIRECT_COLUMN(1);
                last = EW_DIRECT_COLUMN(0);
                EW_DIRECT_STORE(v);
            }
        } else {
            for (uint8_t *const end = y + lane->inner * step; y != end;) {
                EW_DIRECT_LOAD();
                next = last + EW_DIRECT_COLUMN(1);
                EW_DIRECT_LOAD();
                v = next + EW_DIRECT_COLUMN(2);
                last = EW_DIRECT_COLUMN(0);
                EW_DIRECT_STORE(v);
            }
            if (lane->leaves_right) {
                EW_DIRECT_LOAD();
                next = last + EW_DIRECT_COLUMN(1);
            }
        }
        lane = kept;
        if (lane->leaves_right) {
            c0 = c1 = c2 = lane->zero;
            v = next + EW_DIRECT_COLUMN(2);
            EW_DIRECT_STORE(v);
        }
        if (++row == lane->rows)
            return;
        at = ew_row_on(lane->image, at, 1);
    }
}

/* The row above the first window's middle, or padding. */
static void ew_direct_line(const ew_direct *p, const ew_direct_lane *lane)
{
    const int8_t *x = lane->top < 0 ? &lane->zero : lane->x + ew_row(&p->x, lane->top);
    const int32_t step = lane->top < 0 ? 0 : p->x.pixel;
    int8_t *line = lane->line;
    for (const int8_t *const end = line + lane->columns; line != end; x += step)
        *line++ = *x;
}

EW_DIRECT_HOT void ew_direct_kept(const ew_direct *p, ew_direct_lane *lane)
{
    ew_direct_line(p, lane);
    ew_direct_plane(p, lane, 1, 1);
}

EW_DIRECT_HOT void ew_direct_full(const ew_direct *p, ew_direct_lane *lane) { ew_direct_plane(p, lane, 1, 0); }

EW_DIRECT_HOT void ew_direct_half(const ew_direct *p, ew_direct_lane *lane) { ew_direct_plane(p, lane, 2, 0); }

/* What planes leave out: ranges smaller than the type's. */
EW_DIRECT_HOT static void ew_direct_settle(const ew_direct *p, uint8_t *y, int32_t step, int32_t columns, int32_t channels)
{
    const int32_t low = p->low, high = p->high;
    for (; columns > 0; columns--, y += step)
        for (uint8_t *at = y; at != y + channels; at++) {
            const int32_t v = (int8_t)*at;
            if (v < low)
                *at = (uint8_t)low;
            else if (v > high)
                *at = (uint8_t)high;
        }
}

/* Some channels of a part. The image of the outputs begins at `y`; the part's first row is row `origin` there. */
static void ew_direct_part(const ew_direct *p, int8_t *x, uint8_t *y, const ew_image *image, int32_t origin,
                           const ew_part *part, int32_t first, int32_t last, int8_t *line)
{
    const int32_t left = part->left * p->stride - p->pad_w, begin = ew_max(0, left);
    const int32_t end = left + (part->right - part->left - 1) * p->stride + 3;
    ew_direct_lane lane;
    lane.image = image;
    lane.line = line;
    lane.at = ew_row(image, origin);
    lane.top = part->top * p->stride - p->pad_h;
    lane.rows = part->bottom - part->top;
    lane.shift = p->shift;
    lane.columns = ew_min(end, p->width) - begin;
    lane.zero = p->zero;
    lane.leaves_left = left < 0;
    lane.leaves_right = end > p->width;
    lane.inner = part->right - part->left - lane.leaves_right;
    if (lane.rows <= 0 || part->right <= part->left)
        return;
    x += begin * p->x.pixel;
    lane.weights = p->weights + 9 * first;
    lane.factors = p->factors + p->factor_count * first;
    for (int32_t channel = first; channel < last; channel++, y++) {
        lane.x = x + channel / p->multiplier;
        lane.y = y;
        if (p->factor_count == 3)
            lane.shift = lane.factors[2];
        p->plane(p, &lane);
        lane.weights += 9;
        lane.factors += p->factor_count;
    }
    for (int32_t row = 0; (p->low > -128 || p->high < 127) && row < lane.rows; row++)
        ew_direct_settle(p, y + ew_row(image, origin + row) - (last - first), image->pixel, part->right - part->left,
                         last - first);
}

void ew_direct_run(const ew_direct *p, int8_t *x, uint8_t *y, const ew_part *part, int32_t first, int32_t last,
                   int8_t *scratch)
{
    ew_direct_part(p, x, y + part->left * p->y.pixel + first, &p->y, part->top, part, first, last, scratch);
}

void ew_direct_shared(const ew_direct *p, int8_t *x, uint8_t *y, const ew_part *part, int32_t first, int32_t last,
                      const ew_direct_blocks *blocks, int8_t *scratch)
{
    const int32_t size = last - first, rows = part->bottom - part->top, columns = part->right - part->left;
    const ew_image image = {blocks->columns * size, size, 0};
    uint8_t *const kept = (uint8_t *)scratch;
    for (int32_t i = 0; i < rows; i += blocks->rows)
        for (int32_t j = 0; j < columns; j += blocks->columns) {
            const int32_t height = ew_min(blocks->rows, rows - i), width = ew_min(blocks->columns, columns - j);
            const int32_t top = part->top + (blocks->backward ? rows - i - height : i);
            const int32_t left = part->left + (blocks->backward ? columns - j - width : j);
            const ew_part few = {top, top + height, left, left + width};
            ew_direct_part(p, x, kept, &image, 0, &few, first, last, scratch + blocks->rows * image.row);
            for (int32_t row = 0; row < height; row++)
                for (int32_t column = 0; column < width; column++)
                    memcpy(y + ew_row(&p->y, top + row) + (left + column) * p->y.pixel + first,
                           kept + row * image.row + column * size, (uint32_t)size);
        }
}
