#include "simd_conv.h"

/* A product of some pixels of a tile with two vectors of channels. */
typedef struct {
    const float *tile; /* of the first pixel */
    int32_t pitch; /* floats from pixel to pixel there */
    int32_t depth; /* numbers per pixel and tap */
    int32_t taps, across; /* how many there are, and from tap to tap of a pixel in the tile */
    size_t tap; /* from tap to tap in weights */
    const float *first, *second; /* panels, from the first of these numbers on */
    const float *bias; /* of these channels; NULL: continue the sums of `from` */
    float *const *from; /* for each pixel its channels */
    float *const *to;
    int32_t column; /* where these channels lie there */
    float low, high;
    const float *ahead; /* weights for later; NULL: those a page behind, since all are read from front to back */
    size_t apart; /* from the first panel to the second there */
    int32_t step; /* floats to go on there with each number of a pixel */
} ew_simd_job;

/* Pixels of a tile in runs, in each of which they lie side by side. */
typedef struct {
    int32_t count, width; /* runs, and pixels in each */
    int32_t apart; /* floats from run to run */
} ew_simd_runs;

/* As many pixels at once as registers hold, with two vectors of sums each; and how few take about as long for each. */
#if EW_LANES == 16
#define EW_SIMD_MOST 14
#define EW_SIMD_FEW 8
#elif defined(__aarch64__)
#define EW_SIMD_MOST 8 /* and the vectors that their numbers come from */
#define EW_SIMD_FEW 8
#else
#define EW_SIMD_MOST 6
#define EW_SIMD_FEW 5
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
#define EW_STEP_2(i) { const ew_vf v = ew_vf_all(a[(i) * pitch]); s##i = ew_vf_fma(v, w0, s##i); t##i = ew_vf_fma(v, w1, t##i); }
#define EW_STORE_2(i) ew_vf_store(job->to[i] + column, ew_vf_clamp(s##i, low, high)); \
    ew_vf_store(job->to[i] + column + EW_LANES, ew_vf_clamp(t##i, low, high));
#define EW_DECLARE_1(i) ew_vf s##i;
#define EW_BIAS_1(i) s##i = b0;
#define EW_LOAD_1(i) s##i = ew_vf_load(job->from[i] + column);
#define EW_STEP_1(i) s##i = ew_vf_fma(ew_vf_all(a[(i) * pitch]), w0, s##i);
#define EW_STORE_1(i) ew_vf_store(job->to[i] + column, ew_vf_clamp(s##i, low, high));

/* Four numbers of every pixel at once where a vector is multiplied by a lane of another: a number in all lanes would go
 * through the units that multiply. All registers are taken, so that nothing is to be fetched early. */
#if defined(__aarch64__) && defined(__ARM_NEON)
#define EW_NUMBERS(i) const ew_vf v##i = ew_vf_load(a + (i) * pitch);
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
#define EW_AHEAD const float *ahead = job->ahead + (size_t)k * job->tap;
#define EW_NEARER(p) __builtin_prefetch(p, 0, 2)
#define EW_FETCH EW_NEARER(ahead); if (EW_LANES == EW_PANEL) EW_NEARER(ahead + job->apart); ahead += job->step;
#else
#define EW_AHEAD
#define EW_FETCH
#endif

#if defined(__aarch64__) && defined(__GNUC__) && !defined(__clang__)
#define EW_AS_WRITTEN __attribute__((optimize("no-schedule-insns")))
#else
#define EW_AS_WRITTEN
#endif

#define EW_PRODUCTS(n, name, between, ahead, fetch)                                                                    \
    EW_AS_WRITTEN static void ew_simd_two_##name(const ew_simd_job *job)                                               \
    {                                                                                                                  \
        const intptr_t pitch = between;                                                                                \
        const ew_vf low = ew_vf_all(job->low), high = ew_vf_all(job->high);                                            \
        const int32_t column = job->column;                                                                            \
        EW_UPTO_##n(EW_DECLARE_2)                                                                                      \
        if (job->bias) {                                                                                               \
            const ew_vf b0 = ew_vf_load(job->bias), b1 = ew_vf_load(job->bias + EW_LANES);                             \
            EW_UPTO_##n(EW_BIAS_2)                                                                                     \
        } else {                                                                                                       \
            EW_UPTO_##n(EW_LOAD_2)                                                                                     \
        }                                                                                                              \
        for (int32_t k = 0; k < job->taps; k++) {                                                                      \
            const float *first = job->first + (size_t)k * job->tap, *second = job->second + (size_t)k * job->tap;      \
            const float *a = job->tile + k * job->across, *const end = a + job->depth;                                 \
            ahead                                                                                                      \
            EW_FOURS_2(n)                                                                                              \
            for (; a < end; a++, first += EW_PANEL, second += EW_PANEL) {                                              \
                fetch                                                                                                  \
                const ew_vf w0 = ew_vf_load(first), w1 = ew_vf_load(second);                                           \
                EW_UPTO_##n(EW_STEP_2)                                                                                 \
            }                                                                                                          \
        }                                                                                                              \
        EW_UPTO_##n(EW_STORE_2)                                                                                        \
    }                                                                                                                  \
    static void ew_simd_one_##name(const ew_simd_job *job)                                                             \
    {                                                                                                                  \
        const intptr_t pitch = between;                                                                                \
        const ew_vf low = ew_vf_all(job->low), high = ew_vf_all(job->high);                                            \
        const int32_t column = job->column;                                                                            \
        EW_UPTO_##n(EW_DECLARE_1)                                                                                      \
        if (job->bias) {                                                                                               \
            const ew_vf b0 = ew_vf_load(job->bias);                                                                    \
            EW_UPTO_##n(EW_BIAS_1)                                                                                     \
        } else {                                                                                                       \
            EW_UPTO_##n(EW_LOAD_1)                                                                                     \
        }                                                                                                              \
        for (int32_t k = 0; k < job->taps; k++) {                                                                      \
            const float *first = job->first + (size_t)k * job->tap;                                                    \
            const float *a = job->tile + k * job->across, *const end = a + job->depth;                                 \
            for (; a < end; a++, first += EW_PANEL) {                                                                  \
                const ew_vf w0 = ew_vf_load(first);                                                                    \
                EW_UPTO_##n(EW_STEP_1)                                                                                 \
            }                                                                                                          \
        }                                                                                                              \
        EW_UPTO_##n(EW_STORE_1)                                                                                        \
    }

#define EW_PRODUCT(n) EW_PRODUCTS(n, n, EW_SIMD_PITCH, EW_AHEAD, EW_FETCH)

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

/* As many as there can be, wherever they lie; their weights are near. */
#if EW_SIMD_MOST == 14
EW_PRODUCTS(14, apart, job->pitch, , )
#elif EW_SIMD_MOST == 8
EW_PRODUCTS(8, apart, job->pitch, , )
#else
EW_PRODUCTS(6, apart, job->pitch, , )
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

static const ew_simd_product ew_simd_apart[2] = {ew_simd_one_apart, ew_simd_two_apart};

/* The same where fewer than whole vectors of channels exist: sums are moved to whole vectors and back. */
static void ew_simd_partly(const ew_simd_job *whole, ew_simd_product product, int32_t count, int32_t columns)
{
    float lanes[EW_SIMD_MOST][2 * EW_LANES], *rows[EW_SIMD_MOST];
    ew_simd_job job = *whole;
    job.from = job.to = rows;
    job.column = 0;
    for (int32_t n = 0; n < count; n++) {
        rows[n] = lanes[n];
        if (!job.bias) {
            memset(lanes[n], 0, sizeof lanes[n]);
            ew_vf_copy(lanes[n], whole->from[n] + whole->column, columns);
        }
    }
    product(&job);
    for (int32_t n = 0; n < count; n++)
        ew_vf_copy(whole->to[n] + whole->column, lanes[n], columns);
}

/* With `depth` numbers of each tap, all of them in the weights; taps of a pixel lie `across` apart in the tile. */
static ew_simd_job ew_simd_job_of(const float *tile, int32_t taps, int32_t across, int32_t depth, float *const *sums)
{
    const size_t tap = (size_t)depth * EW_PANEL;
    const ew_simd_job job = {
        tile, EW_SIMD_PITCH, depth, taps, across, tap, NULL, NULL, NULL, sums, sums, 0, -INFINITY, INFINITY, NULL, 0, 0};
    return job;
}

/* All channels of all pixels in runs, for numbers start.. of each. */
static void ew_simd_multiply(const ew_simd_conv *conv, const ew_simd_job *whole, int32_t start, ew_simd_runs runs)
{
    const size_t all = (size_t)(conv->kernel_y * conv->kernel_x * conv->depth) * EW_PANEL;
    const float *const panels = conv->weights + start * EW_PANEL;
    const int32_t each = (runs.width + EW_SIMD_MOST - 1) / EW_SIMD_MOST, groups = runs.count * each;
    ew_simd_job job = *whole;
    for (job.column = 0; job.column < conv->channels; job.column += 2 * EW_LANES) {
        const int32_t next = job.column + EW_LANES, later = next + EW_LANES, is_wide = next < conv->channels;
        const int32_t columns = conv->channels - job.column, after = later < conv->channels ? later : 0;
        const float *const ahead = after ? panels + (size_t)(after / EW_PANEL) * all : whole->ahead;
        job.first = panels + (size_t)(job.column / EW_PANEL) * all + job.column % EW_PANEL;
        job.second = is_wide ? panels + (size_t)(next / EW_PANEL) * all + next % EW_PANEL : job.first;
        job.bias = whole->bias ? whole->bias + job.column : NULL;
        job.step = (EW_PANEL + groups - 1) / groups;
        job.apart = (whole->ahead ? after + EW_LANES < conv->channels : is_wide) ? all : 0;
        for (int32_t group = 0, done = 0, n; group < groups; group++, done += n) {
            const int32_t rest = each - group % each, run = group / each, column = done - run * runs.width;
            n = (runs.width - column + rest - 1) / rest; /* alike: one or two pixels alone would wait for their sums */
#if EW_SIMD_MOST == 8
            n += n & (n < runs.width - column); /* pairs of sums keep the units busy: 8 and 6 are faster than 7 and 7 */
#endif
            const ew_simd_product product =
                job.pitch == EW_SIMD_PITCH ? ew_simd_products[is_wide][n - 1] : ew_simd_apart[is_wide];
            job.tile = whole->tile + run * runs.apart + column * job.pitch;
            job.from = whole->from + done;
            job.to = whole->to + done;
            job.ahead = whole->ahead ? ahead + group * job.step * job.depth : job.first + 1024;
            if (columns < EW_LANES + is_wide * EW_LANES)
                ew_simd_partly(&job, product, n, columns);
            else
                product(&job);
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

/* What follows the sums of these pixels. */
static void ew_simd_end(const ew_simd_conv *conv, float *const *rows, int32_t count)
{
    for (int32_t n = 0, next; conv->kind && n < count; n = next) { /* pixels side by side together */
        for (next = n + 1; next < count && rows[next] == rows[next - 1] + conv->channels;)
            next++;
        ew_simd_activate(rows[n], (next - n) * conv->channels, conv->kind, conv->a, conv->b);
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

/* Where sums of pixels wait, which are written to `rows` at the end. */
static void ew_simd_sums(const ew_simd_conv *conv, int32_t count, float *tile, float *const *rows, float **sums)
{
    for (int32_t n = 0; n < count; n++)
        sums[n] = conv->is_shared ? tile + conv->rows * EW_SIMD_PITCH + n * conv->channels : rows[n];
}

/* Adds what numbers start.. of the pixels contribute; those from `later` on follow, none where it is 0. */
static void ew_simd_add(
    const ew_simd_conv *conv, ew_simd_job *job, int32_t start, int32_t later, ew_simd_runs runs, float *const *rows)
{
    job->bias = start == 0 ? conv->bias : NULL;
    job->to = later ? job->from : rows;
    job->low = later ? -INFINITY : conv->low;
    job->high = later ? INFINITY : conv->high;
    job->ahead = conv->weights + later * EW_PANEL; /* of the next block, or of the next tile's first one */
    ew_simd_multiply(conv, job, start, runs);
}

static void ew_simd_tile(
    const ew_simd_conv *conv, const float *x, float *y, ew_part part, int32_t first, int32_t count, float *tile)
{
    const int32_t total = conv->kernel_y * conv->kernel_x * conv->depth;
    const int32_t blocks = (total + EW_SIMD_DEPTH - 1) / EW_SIMD_DEPTH, depth = ((total + blocks - 1) / blocks + 3) / 4 * 4;
    const ew_simd_runs runs = {1, count, 0};
    float *sums[EW_SIMD_ROWS], *rows[EW_SIMD_ROWS];
    ew_simd_rows(conv, y, part, first, count, rows);
    ew_simd_sums(conv, count, tile, rows, sums);
    ew_simd_job job = ew_simd_job_of(tile, 1, 0, depth, sums);
    for (int32_t start = 0; start < total; start += depth) {
        const int32_t until = ew_min(start + depth, total);
        job.depth = until - start;
        ew_simd_fill_tile(conv, x, part, first, count, start, until, tile);
        ew_simd_add(conv, &job, start, until < total ? until : 0, runs, rows);
    }
    ew_simd_end(conv, rows, count);
}

/* Numbers from..until of the `lines` pixels that row k of the windows reaches from rows of the output. */
static void ew_simd_fill_strips(
    const ew_simd_conv *conv, const float *x, ew_part part, int32_t k, int32_t from, int32_t until, int32_t lines,
    float *to)
{
    for (int32_t row = part.top; row < part.bottom; row++) {
        const int32_t i = row * conv->stride_y - conv->top + k * conv->dilation_y, side = part.left - conv->left;
        const float *const line = x + ew_row(&conv->in, i) + from;
        for (int32_t j = side; j < side + lines; j++, to += EW_SIMD_PITCH)
            if (j >= 0 && j < conv->width)
                ew_vf_copy_over(to, line + j * conv->in.pixel, until - from);
            else
                memset(to, 0, (size_t)(until - from) * sizeof *to);
    }
}

/* The same for whole rows, or a piece of one, where windows lie side by side: pixels that several of them read are packed
 * once for each row of the windows. Rows of padding add nothing: there sums begin and end without numbers. */
static void ew_simd_strips(const ew_simd_conv *conv, const float *x, float *y, ew_part part, float *tile)
{
    const int32_t width = part.right - part.left, count = (part.bottom - part.top) * width;
    const int32_t lines = width + (conv->kernel_x - 1) * conv->dilation_x, unit = conv->kernel_x * conv->depth;
    const int32_t most = ew_min(EW_SIMD_DEPTH, EW_SIMD_STRIP / conv->kernel_x / 4 * 4);
    const int32_t blocks = (conv->depth + most - 1) / most, depth = ((conv->depth + blocks - 1) / blocks + 3) / 4 * 4;
    float *sums[EW_SIMD_ROWS], *rows[EW_SIMD_ROWS];
    ew_simd_rows(conv, y, part, 0, count, rows);
    ew_simd_sums(conv, count, tile, rows, sums);
    ew_simd_job job = ew_simd_job_of(tile, conv->kernel_x, conv->dilation_x * EW_SIMD_PITCH, conv->depth, sums);
    for (int32_t k = 0; k < conv->kernel_y; k++) {
        const int32_t up = k * conv->dilation_y - conv->top, height = part.bottom - part.top;
        const int32_t first = part.top * conv->stride_y + up;
        int32_t begin; /* of the rows that have numbers */
        const int32_t some = ew_simd_inside(first, conv->stride_y, height, 0, conv->height, &begin);
        const ew_part inside = {part.top + begin, part.top + begin + some, part.left, part.right};
        const int32_t bounds[4] = {0, begin, begin + some, height};
        for (int32_t from = 0; from < conv->depth; from += depth) {
            const int32_t until = ew_min(from + depth, conv->depth), is_last = k + 1 == conv->kernel_y;
            const int32_t later = until < conv->depth ? k * unit + until : is_last ? 0 : (k + 1) * unit;
            ew_simd_fill_strips(conv, x, inside, k, from, until, lines, tile);
            for (int32_t n = 0; n < 3; n++) {
                const ew_simd_runs runs = {bounds[n + 1] - bounds[n], width, lines * EW_SIMD_PITCH};
                if (runs.count == 0 || (n != 1 && later && k + from))
                    continue;
                job.depth = n == 1 ? until - from : 0;
                job.from = sums + bounds[n] * width;
                ew_simd_add(conv, &job, k * unit + from, later, runs, rows + bounds[n] * width);
            }
        }
    }
    ew_simd_end(conv, rows, count);
}

/* Where the share of one of `parts` begins, of `total` things that are shared evenly. */
static int32_t ew_simd_share(int32_t total, int32_t parts, int32_t index)
{
    return total / parts * index + ew_min(index, total % parts);
}

/* Into how many pieces to cut rows of `width` pixels that are packed as strips; 0 where windows are packed one by one. */
static int32_t ew_simd_pieces(const ew_simd_conv *conv, int32_t width)
{
    const int32_t unit = conv->kernel_x * conv->depth, room = conv->rows - (conv->kernel_x - 1) * conv->dilation_x;
    const int32_t is_joined = conv->kernel_x > 1 && conv->kernel_x <= 8 && conv->stride_x == 1;
    if (!is_joined || unit < 80 || unit * conv->kernel_y <= EW_SIMD_DEPTH || room < 12 || width < 12)
        return 0;
    const int32_t pieces = (width + room - 1) / room, least = width / pieces;
    return least >= EW_SIMD_FEW * ((least + EW_SIMD_MOST - 1) / EW_SIMD_MOST) ? pieces : 0;
}

/* Tiles are alike: each of them reads all weights. */
static void ew_simd_run_strips(
    const ew_simd_conv *conv, const float *x, float *y, ew_part part, int32_t pieces, float *tile)
{
    const int32_t height = part.bottom - part.top, width = part.right - part.left;
    const int32_t lines = pieces > 1 ? 1 : conv->rows / (width + (conv->kernel_x - 1) * conv->dilation_x);
    const int32_t parts = (height + lines - 1) / lines, tiles = parts * pieces;
    for (int32_t done = 0; done < tiles; done++) {
        const int32_t index = conv->is_backward ? tiles - 1 - done : done, i = index / pieces, j = index % pieces;
        const ew_part some = {
            part.top + ew_simd_share(height, parts, i), part.top + ew_simd_share(height, parts, i + 1),
            part.left + ew_simd_share(width, pieces, j), part.left + ew_simd_share(width, pieces, j + 1)};
        ew_simd_strips(conv, x, y, some, tile);
    }
}

/* Tiles of pixels in raster order, packed window by window. */
static void ew_simd_run_tiles(const ew_simd_conv *conv, const float *x, float *y, ew_part part, float *tile)
{
    const int32_t pixels = (part.bottom - part.top) * (part.right - part.left);
    const int32_t unit = ew_min(EW_SIMD_MOST, conv->rows), units = (pixels + unit - 1) / unit, most = conv->rows / unit;
    const int32_t tiles = (units + most - 1) / most;
    for (int32_t done = 0; done < tiles; done++) {
        const int32_t index = conv->is_backward ? tiles - 1 - done : done;
        const int32_t first = unit * ew_simd_share(units, tiles, index);
        const int32_t end = ew_min(pixels, unit * ew_simd_share(units, tiles, index + 1));
        ew_simd_tile(conv, x, y, part, first, end - first, tile);
    }
}

/* Windows of few numbers are read where they lie in the image: to pack them would take as long as to multiply. */
static int32_t ew_simd_is_direct(const ew_simd_conv *conv)
{
    const int32_t unit = conv->kernel_x * conv->depth;
    const int32_t is_joined = conv->kernel_x == 1 || (conv->dilation_x == 1 && conv->in.pixel == conv->depth);
    return is_joined && unit < 80 && unit * conv->kernel_y <= EW_SIMD_DEPTH && !conv->is_shared && conv->bias &&
        !conv->in.rows && conv->stride_x * conv->in.pixel < EW_SIMD_PITCH;
}

/* Columns whose windows reach neither beyond the left nor the right side; the last pixels come twice rather than few at
 * once. */
static void ew_simd_run_direct(const ew_simd_conv *conv, const float *x, float *y, ew_part part)
{
    const int32_t width = part.right - part.left, unit = conv->kernel_x * conv->depth;
    float *rows[EW_SIMD_ROWS] = {NULL};
    ew_simd_job job = ew_simd_job_of(x, 0, conv->dilation_y * conv->in.row, unit, rows);
    job.pitch = conv->stride_x * conv->in.pixel;
    for (int32_t row = part.top; row < part.bottom; row++) {
        const int32_t up = row * conv->stride_y - conv->top;
        int32_t ky;
        job.taps = ew_simd_inside(up, conv->dilation_y, conv->kernel_y, 0, conv->height, &ky);
        const float *const line = x + (up + ky * conv->dilation_y) * conv->in.row - conv->left * conv->in.pixel;
        for (int32_t done = 0, count; done < width; done += count) {
            count = ew_max(1, ew_min(width - done, EW_SIMD_ROWS) / EW_SIMD_MOST) * EW_SIMD_MOST;
            const ew_simd_runs runs = {1, count, 0};
            const int32_t first = part.left + ew_min(done, width - count);
            const ew_part some = {row, row + 1, first, first + count};
            ew_simd_rows(conv, y, some, 0, count, rows);
            job.tile = line + first * job.pitch;
            job.bias = conv->bias;
            job.low = conv->low;
            job.high = conv->high;
            ew_simd_multiply(conv, &job, ky * unit, runs);
            ew_simd_end(conv, rows, count);
        }
    }
}

void ew_simd_conv_run(const ew_simd_conv *conv, const float *x, float *y, ew_part part, float *tile)
{
    const int32_t pieces = ew_simd_pieces(conv, part.right - part.left);
    if (pieces) {
        ew_simd_run_strips(conv, x, y, part, pieces, tile);
        return;
    }
    ew_part left = part, middle = part, right = part; /* of its columns */
    middle.left = ew_max(part.left, (conv->left + conv->stride_x - 1) / conv->stride_x);
    middle.right = ew_min(part.right, (conv->width - conv->kernel_x + conv->left) / conv->stride_x + 1);
    if (!ew_simd_is_direct(conv) || middle.right - middle.left < EW_SIMD_MOST) {
        ew_simd_run_tiles(conv, x, y, part, tile);
        return;
    }
    left.right = middle.left;
    right.left = middle.right;
    ew_simd_run_tiles(conv, x, y, left, tile);
    ew_simd_run_direct(conv, x, y, middle);
    ew_simd_run_tiles(conv, x, y, right, tile);
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
    const ew_simd_runs runs = {1, 1, 0};
    float *rows[1];
    rows[0] = y;
    ew_simd_job job = ew_simd_job_of(x, 1, 0, conv->depth, rows);
    job.bias = conv->bias;
    job.low = conv->low;
    job.high = conv->high;
    ew_simd_multiply(conv, &job, 0, runs);
}
#endif

void ew_simd_conv_line(const ew_simd_conv *conv, const float *x, float *y)
{
    ew_simd_line(conv, x, y);
    if (conv->kind)
        ew_simd_activate(y, conv->channels, conv->kind, conv->a, conv->b);
}
