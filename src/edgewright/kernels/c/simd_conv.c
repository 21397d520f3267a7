#include "simd_conv.h"

/* A product of some pixels of a tile with two vectors of channels. */
typedef struct {
    const float *tile; /* of the first pixel */
    int32_t depth; /* numbers per pixel */
    const float *first, *second; /* panels, from the first of these numbers on */
    const float *bias; /* of these channels; NULL: continue the sums of `from` */
    float *const *from; /* for each pixel its channels */
    float *const *to;
    int32_t column; /* where these channels lie there */
    float low, high;
    const float *ahead; /* weights for later; NULL: all that follow are read from front to back */
    size_t apart; /* from the first panel to the second there */
    int32_t step; /* floats to go on there with each number of a pixel */
} ew_simd_job;

/* As many pixels at once as registers hold, with two vectors of sums each. */
#if EW_LANES == 16
#define EW_SIMD_MOST 14
#elif defined(__aarch64__)
#define EW_SIMD_MOST 8 /* and the vectors that their numbers come from */
#else
#define EW_SIMD_MOST 6
#endif

/* Written out by the preprocessor, so that sums stay in registers whatever the compiler thinks of loops. */
#define EW_UPTO_1(X) X(0)
#define EW_UPTO_2(X) EW_UPTO_1(X) X(1)
#define EW_UPTO_3(X) EW_UPTO_2(X) X(2)
#define EW_UPTO_4(X) EW_UPTO_3(X) X(3)
#define EW_UPTO_5(X) EW_UPTO_4(X) X(4)
#define EW_UPTO_6(X) EW_UPTO_5(X) X(5)
#define EW_UPTO_7(X) EW_UPTO_6(X) X(6)
#define EW_UPTO_8(X) EW_UPTO_7(X) X(7)
#define EW_UPTO_9(X) EW_UPTO_8(X) X(8)
#define EW_UPTO_10(X) EW_UPTO_9(X) X(9)
#define EW_UPTO_11(X) EW_UPTO_10(X) X(10)
#define EW_UPTO_12(X) EW_UPTO_11(X) X(11)
#define EW_UPTO_13(X) EW_UPTO_12(X) X(12)
#define EW_UPTO_14(X) EW_UPTO_13(X) X(13)

#define EW_DECLARE_2(i) ew_vf s##i, t##i;
#define EW_BIAS_2(i) s##i = b0; t##i = b1;
#define EW_LOAD_2(i) s##i = ew_vf_load(job->from[i] + column); t##i = ew_vf_load(job->from[i] + column + EW_LANES);
#define EW_STEP_2(i) { const ew_vf v = ew_vf_all(a[(i) * EW_SIMD_PITCH]); s##i = ew_vf_fma(v, w0, s##i); t##i = ew_vf_fma(v, w1, t##i); }
#define EW_STORE_2(i) ew_vf_store(job->to[i] + column, ew_vf_clamp(s##i, low, high)); \
    ew_vf_store(job->to[i] + column + EW_LANES, ew_vf_clamp(t##i, low, high));
#define EW_DECLARE_1(i) ew_vf s##i;
#define EW_BIAS_1(i) s##i = b0;
#define EW_LOAD_1(i) s##i = ew_vf_load(job->from[i] + column);
#define EW_STEP_1(i) s##i = ew_vf_fma(ew_vf_all(a[(i) * EW_SIMD_PITCH]), w0, s##i);
#define EW_STORE_1(i) ew_vf_store(job->to[i] + column, ew_vf_clamp(s##i, low, high));

/* Four numbers of every pixel at once where a vector is multiplied by a lane of another: a number in all lanes would go
 * through the units that multiply. All registers are taken, so that nothing is to be fetched early. */
#if defined(__aarch64__) && defined(__ARM_NEON)
#define EW_NUMBERS(i) const ew_vf v##i = ew_vf_load(a + (i) * EW_SIMD_PITCH);
#define EW_LANE_0(i) s##i = vfmaq_laneq_f32(s##i, w0, v##i, 0); t##i = vfmaq_laneq_f32(t##i, w1, v##i, 0);
#define EW_LANE_1(i) s##i = vfmaq_laneq_f32(s##i, w0, v##i, 1); t##i = vfmaq_laneq_f32(t##i, w1, v##i, 1);
#define EW_LANE_2(i) s##i = vfmaq_laneq_f32(s##i, w0, v##i, 2); t##i = vfmaq_laneq_f32(t##i, w1, v##i, 2);
#define EW_LANE_3(i) s##i = vfmaq_laneq_f32(s##i, w0, v##i, 3); t##i = vfmaq_laneq_f32(t##i, w1, v##i, 3);
#define EW_LANE(n, k)                                                                                              \
    {                                                                                                              \
        const ew_vf w0 = ew_vf_load(first + (k) * EW_PANEL), w1 = ew_vf_load(second + (k) * EW_PANEL);             \
        EW_UPTO_##n(EW_LANE_##k)                                                                                   \
    }
#define EW_FOURS_2(n)                                                                                              \
    for (; end - a >= 4; a += 4, first += 4 * EW_PANEL, second += 4 * EW_PANEL) {                                  \
        EW_UPTO_##n(EW_NUMBERS) EW_LANE(n, 0) EW_LANE(n, 1) EW_LANE(n, 2) EW_LANE(n, 3)                            \
    }
#else
#define EW_FOURS_2(n)
#endif
/* Weights for later come nearer meanwhile: far memory does not give them as fast as the first pixels multiply. Where
 * vectors are short, it does. */
#if EW_LANES >= 8
#define EW_AHEAD const float *ahead = job->ahead; const int32_t step = job->step; const size_t apart = job->apart;
#define EW_NEARER(p) __builtin_prefetch(p, 0, 2)
#define EW_FETCH EW_NEARER(ahead); if (EW_LANES == EW_PANEL) EW_NEARER(ahead + apart); ahead += step;
#else
#define EW_AHEAD
#define EW_FETCH
#endif

#if defined(__aarch64__) && defined(__GNUC__) && !defined(__clang__)
#define EW_AS_WRITTEN __attribute__((optimize("no-schedule-insns")))
#else
#define EW_AS_WRITTEN
#endif

#define EW_PRODUCT(n)                                                                           \
    EW_AS_WRITTEN static void ew_simd_two_##n(const ew_simd_job *job)                           \
    {                                                                                           \
        const float *first = job->first, *second = job->second;                                 \
        const float *a = job->tile, *const end = a + job->depth;                                \
        const ew_vf low = ew_vf_all(job->low), high = ew_vf_all(job->high);                     \
        const int32_t column = job->column;                                                     \
        EW_UPTO_##n(EW_DECLARE_2)                                                               \
        if (job->bias) {                                                                        \
            const ew_vf b0 = ew_vf_load(job->bias), b1 = ew_vf_load(job->bias + EW_LANES);      \
            EW_UPTO_##n(EW_BIAS_2)                                                              \
        } else {                                                                                \
            EW_UPTO_##n(EW_LOAD_2)                                                              \
        }                                                                                       \
        EW_AHEAD                                                                                \
        EW_FOURS_2(n)                                                                           \
        for (; a < end; a++, first += EW_PANEL, second += EW_PANEL) {                           \
            EW_FETCH                                                                            \
            const ew_vf w0 = ew_vf_load(first), w1 = ew_vf_load(second);                        \
            EW_UPTO_##n(EW_STEP_2)                                                              \
        }                                                                                       \
        EW_UPTO_##n(EW_STORE_2)                                                                 \
    }                                                                                           \
    static void ew_simd_one_##n(const ew_simd_job *job)                                         \
    {                                                                                           \
        const float *first = job->first;                                                        \
        const float *a = job->tile, *const end = a + job->depth;                                \
        const ew_vf low = ew_vf_all(job->low), high = ew_vf_all(job->high);                     \
        const int32_t column = job->column;                                                     \
        EW_UPTO_##n(EW_DECLARE_1)                                                               \
        if (job->bias) {                                                                        \
            const ew_vf b0 = ew_vf_load(job->bias);                                             \
            EW_UPTO_##n(EW_BIAS_1)                                                              \
        } else {                                                                                \
            EW_UPTO_##n(EW_LOAD_1)                                                              \
        }                                                                                       \
        for (; a < end; a++, first += EW_PANEL) {                                               \
            const ew_vf w0 = ew_vf_load(first);                                                 \
            EW_UPTO_##n(EW_STEP_1)                                                              \
        }                                                                                       \
        EW_UPTO_##n(EW_STORE_1)                                                                 \
    }

EW_PRODUCT(1)
EW_PRODUCT(2)
EW_PRODUCT(3)
EW_PRODUCT(4)
EW_PRODUCT(5)
EW_PRODUCT(6)
#if EW_SIMD_MOST > 6
EW_PRODUCT(7)
EW_PRODUCT(8)
#endif
#if EW_SIMD_MOST > 8
EW_PRODUCT(9)
EW_PRODUCT(10)
EW_PRODUCT(11)
EW_PRODUCT(12)
EW_PRODUCT(13)
EW_PRODUCT(14)
#endif

typedef void (*ew_simd_product)(const ew_simd_job *);

static const ew_simd_product ew_simd_products[2][EW_SIMD_MOST] = {
#if EW_SIMD_MOST == 14
    {ew_simd_one_1, ew_simd_one_2, ew_simd_one_3, ew_simd_one_4, ew_simd_one_5, ew_simd_one_6, ew_simd_one_7,
     ew_simd_one_8, ew_simd_one_9, ew_simd_one_10, ew_simd_one_11, ew_simd_one_12, ew_simd_one_13, ew_simd_one_14},
    {ew_simd_two_1, ew_simd_two_2, ew_simd_two_3, ew_simd_two_4, ew_simd_two_5, ew_simd_two_6, ew_simd_two_7,
     ew_simd_two_8, ew_simd_two_9, ew_simd_two_10, ew_simd_two_11, ew_simd_two_12, ew_simd_two_13, ew_simd_two_14},
#elif EW_SIMD_MOST == 8
    {ew_simd_one_1, ew_simd_one_2, ew_simd_one_3, ew_simd_one_4, ew_simd_one_5, ew_simd_one_6, ew_simd_one_7,
     ew_simd_one_8},
    {ew_simd_two_1, ew_simd_two_2, ew_simd_two_3, ew_simd_two_4, ew_simd_two_5, ew_simd_two_6, ew_simd_two_7,
     ew_simd_two_8},
#else
    {ew_simd_one_1, ew_simd_one_2, ew_simd_one_3, ew_simd_one_4, ew_simd_one_5, ew_simd_one_6},
    {ew_simd_two_1, ew_simd_two_2, ew_simd_two_3, ew_simd_two_4, ew_simd_two_5, ew_simd_two_6},
#endif
};

/* The same where fewer than whole vectors of channels exist: sums are moved to whole vectors and back. */
static void ew_simd_partly(const ew_simd_job *whole, ew_simd_product product, int32_t count, int32_t columns)
{
    float lanes[EW_SIMD_MOST][2 * EW_LANES] = {{0.0f}}, *rows[EW_SIMD_MOST];
    ew_simd_job job = *whole;
    job.from = job.to = rows;
    job.column = 0;
    for (int32_t n = 0; n < count; n++) {
        rows[n] = lanes[n];
        if (!job.bias)
            ew_vf_copy(lanes[n], whole->from[n] + whole->column, columns);
    }
    product(&job);
    for (int32_t n = 0; n < count; n++)
        ew_vf_copy(whole->to[n] + whole->column, lanes[n], columns);
}

/* All channels of `count` pixels, for numbers start.. of each. */
static void ew_simd_multiply(const ew_simd_conv *conv, const ew_simd_job *whole, int32_t start, int32_t count)
{
    const size_t all = (size_t)(conv->kernel_y * conv->kernel_x * conv->depth) * EW_PANEL;
    const float *const panels = conv->weights + start * EW_PANEL;
    const int32_t groups = (count + EW_SIMD_MOST - 1) / EW_SIMD_MOST;
    ew_simd_job job = *whole;
    for (job.column = 0; job.column < conv->channels; job.column += 2 * EW_LANES) {
        const int32_t next = job.column + EW_LANES, later = next + EW_LANES, is_wide = next < conv->channels;
        const int32_t columns = conv->channels - job.column;
        const int32_t after = later < conv->channels ? later : 0;
        const float *const ahead = after ? panels + (size_t)(after / EW_PANEL) * all : whole->ahead;
        job.first = panels + (size_t)(job.column / EW_PANEL) * all + job.column % EW_PANEL;
        job.second = is_wide ? panels + (size_t)(next / EW_PANEL) * all + next % EW_PANEL : job.first;
        job.bias = whole->bias ? whole->bias + job.column : NULL;
        job.step = whole->ahead ? (EW_PANEL + groups - 1) / groups : 0;
        job.apart = whole->ahead && after + EW_LANES < conv->channels ? all : 0;
        for (int32_t group = 0, done = 0, n; group < groups; group++, done += n) {
            n = (count - done + groups - group - 1) / (groups - group); /* alike: a few pixels alone would wait for their sums */
            job.tile = whole->tile + done * EW_SIMD_PITCH;
            job.from = whole->from + done;
            job.to = whole->to + done;
            job.ahead = whole->ahead ? ahead + group * job.step * job.depth : job.first;
            if (columns < EW_LANES + is_wide * EW_LANES)
                ew_simd_partly(&job, ew_simd_products[is_wide][n - 1], n, columns);
            else
                ew_simd_products[is_wide][n - 1](&job);
        }
    }
}

/* Numbers of padding, or of a row of the image, for a window that reaches beyond the row, or whose taps lie apart. */
static void ew_simd_fill_edge(
    const ew_simd_conv *conv, const float *x, int32_t side, int32_t from, int32_t until, float *to)
{
    for (int32_t k = from / conv->depth; from < until; k++) {
        const int32_t skip = from - k * conv->depth, run = ew_min(conv->depth - skip, until - from);
        const int32_t j = side + k * conv->dilation_x;
        if (x && j >= 0 && j < conv->width)
            ew_vf_copy_over(to, x + j * conv->in.pixel + skip, run);
        else
            memset(to, 0, (size_t)run * sizeof *to);
        to += run;
        from += run;
    }
}

/* Numbers from..until of a row of the windows of `count` pixels side by side, the first at column `side` of the image. */
static void ew_simd_fill_row(
    const ew_simd_conv *conv, const float *x, int32_t side, int32_t count, int32_t from, int32_t until, float *to)
{
    const int32_t is_joined = conv->kernel_x == 1 || (conv->dilation_x == 1 && conv->in.pixel == conv->depth);
    const int32_t last = x && is_joined ? conv->width - conv->kernel_x : -1; /* column of the last whole window */
    const int32_t step = conv->stride_x, pixel = conv->in.pixel, run = until - from;
    for (int32_t n = 0; n < count; n++, side += step, to += EW_SIMD_PITCH)
        if (side >= 0 && side <= last)
            ew_vf_copy_over(to, x + side * pixel + from, run);
        else
            ew_simd_fill_edge(conv, x, side, from, until, to);
}

/* Numbers from..until of a tile: row by row of the windows, for pixels of one output row at a time. */
static void ew_simd_fill_tile(
    const ew_simd_conv *conv, const float *x, ew_part part, int32_t first, int32_t count, int32_t from, int32_t until,
    float *tile)
{
    const int32_t width = part.right - part.left, unit = conv->kernel_x * conv->depth;
    int32_t row = part.top + first / width, column = part.left + first % width;
    for (int32_t done = 0, some; done < count; done += some, row++, column = part.left) {
        float *const line = tile + done * EW_SIMD_PITCH;
        some = ew_min(count - done, part.right - column);
        for (int32_t k = 0; k < conv->kernel_y; k++) {
            const int32_t i = row * conv->stride_y - conv->top + k * conv->dilation_y;
            const int32_t begin = ew_max(from, k * unit), end = ew_min(until, (k + 1) * unit);
            if (begin < end)
                ew_simd_fill_row(
                    conv, i >= 0 && i < conv->height ? x + ew_row(&conv->in, i) : NULL,
                    column * conv->stride_x - conv->left, some, begin - k * unit, end - k * unit, line + begin - from);
        }
    }
}

static void ew_simd_rows(const ew_simd_conv *conv, float *y, ew_part part, int32_t first, int32_t count, float **rows)
{
    const int32_t width = part.right - part.left;
    int32_t row = part.top + first / width, column = part.left + first % width;
    for (int32_t n = 0; n < count; n++) {
        rows[n] = y + ew_row(&conv->out, row) + column * conv->out.pixel;
        if (++column == part.right) {
            column = part.left;
            row++;
        }
    }
}

static void ew_simd_tile(
    const ew_simd_conv *conv, const float *x, float *y, ew_part part, int32_t first, int32_t count, float *tile)
{
    const int32_t total = conv->kernel_y * conv->kernel_x * conv->depth;
    const int32_t blocks = (total + EW_SIMD_DEPTH - 1) / EW_SIMD_DEPTH, depth = ((total + blocks - 1) / blocks + 3) / 4 * 4;
    float *sums[EW_SIMD_ROWS], *rows[EW_SIMD_ROWS];
    ew_simd_rows(conv, y, part, first, count, rows);
    for (int32_t n = 0; n < count; n++)
        sums[n] = conv->is_shared ? tile + count * EW_SIMD_PITCH + n * conv->channels : rows[n];
    for (int32_t start = 0; start < total; start += depth) {
        const int32_t until = ew_min(start + depth, total), is_last = until == total;
        ew_simd_job job = {tile, until - start, NULL, NULL, NULL, sums, sums, 0, -INFINITY, INFINITY, NULL, 0, 0};
        job.ahead = conv->weights + (is_last ? 0 : until) * EW_PANEL; /* of the next block, or the next tile's first one */
        if (start == 0)
            job.bias = conv->bias;
        if (is_last) {
            job.to = rows;
            job.low = conv->low;
            job.high = conv->high;
        }
        ew_simd_fill_tile(conv, x, part, first, count, start, until, tile);
        ew_simd_multiply(conv, &job, start, count);
    }
    for (int32_t n = 0, next; conv->kind && n < count; n = next) { /* pixels side by side together */
        for (next = n + 1; next < count && rows[next] == rows[next - 1] + conv->channels;)
            next++;
        ew_simd_activate(rows[n], (next - n) * conv->channels, conv->kind, conv->a, conv->b);
    }
}

void ew_simd_conv_run(const ew_simd_conv *conv, const float *x, float *y, ew_part part, float *tile)
{
    const int32_t pixels = (part.bottom - part.top) * (part.right - part.left);
    const int32_t tiles = (pixels + conv->rows - 1) / conv->rows;
    for (int32_t done = 0, index = 0, count; done < pixels; done += count, index++) {
        count = (pixels - done + tiles - index - 1) / (tiles - index); /* alike: each tile reads all weights */
        ew_simd_tile(conv, x, y, part, conv->is_backward ? pixels - done - count : done, count, tile);
    }
}

/* A line reads each weight once: panel after panel, so that memory is read from front to back. */
#if defined(__aarch64__) && defined(__ARM_NEON)
#define EW_ADD_LANE(k)                                                        \
    s0 = vfmaq_laneq_f32(s0, ew_vf_load(w + (k) * EW_PANEL), v, k);           \
    s1 = vfmaq_laneq_f32(s1, ew_vf_load(w + (k) * EW_PANEL + 4), v, k);       \
    s2 = vfmaq_laneq_f32(s2, ew_vf_load(w + (k) * EW_PANEL + 8), v, k);       \
    s3 = vfmaq_laneq_f32(s3, ew_vf_load(w + (k) * EW_PANEL + 12), v, k);

static void ew_simd_line_panel(const ew_simd_conv *conv, const float *x, const float *w, const float *bias, float *y)
{
    const ew_vf low = ew_vf_all(conv->low), high = ew_vf_all(conv->high);
    ew_vf s0 = ew_vf_load(bias), s1 = ew_vf_load(bias + 4), s2 = ew_vf_load(bias + 8), s3 = ew_vf_load(bias + 12);
    int32_t i = 0;
    for (; i + 4 <= conv->depth; i += 4, w += 4 * EW_PANEL) {
        const ew_vf v = ew_vf_load(x + i);
        EW_ADD_LANE(0) EW_ADD_LANE(1) EW_ADD_LANE(2) EW_ADD_LANE(3)
    }
    for (; i < conv->depth; i++, w += EW_PANEL) {
        const ew_vf v = ew_vf_all(x[i]);
        EW_ADD_LANE(0)
    }
    ew_vf_store(y, ew_vf_clamp(s0, low, high));
    ew_vf_store(y + 4, ew_vf_clamp(s1, low, high));
    ew_vf_store(y + 8, ew_vf_clamp(s2, low, high));
    ew_vf_store(y + 12, ew_vf_clamp(s3, low, high));
}

static void ew_simd_line(const ew_simd_conv *conv, const float *x, float *y)
{
    for (int32_t c = 0; c < conv->channels; c += EW_PANEL) {
        const float *const weights = conv->weights + (size_t)c * (size_t)conv->depth;
        if (c + EW_PANEL <= conv->channels) {
            ew_simd_line_panel(conv, x, weights, conv->bias + c, y + c);
        } else {
            float last[EW_PANEL];
            ew_simd_line_panel(conv, x, weights, conv->bias + c, last);
            ew_vf_copy(y + c, last, conv->channels - c);
        }
    }
}
#else
static void ew_simd_line(const ew_simd_conv *conv, const float *x, float *y)
{
    float *rows[1];
    ew_simd_job job = {x, conv->depth, NULL, NULL, conv->bias, rows, rows, 0, conv->low, conv->high, NULL, 0, 0};
    rows[0] = y;
    ew_simd_multiply(conv, &job, 0, 1);
}
#endif

void ew_simd_conv_line(const ew_simd_conv *conv, const float *x, float *y)
{
    ew_simd_line(conv, x, y);
    if (conv->kind)
        ew_simd_activate(y, conv->channels, conv->kind, conv->a, conv->b);
}
