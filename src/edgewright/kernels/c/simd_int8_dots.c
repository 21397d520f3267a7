#include "simd_int8_dots.h"

#define EW_ROWS_1(X) X(0)
#define EW_ROWS_2(X) EW_ROWS_1(X) X(1)
#define EW_ROWS_4(X) EW_ROWS_2(X) X(2) X(3)
#define EW_ROWS_6(X) EW_ROWS_4(X) X(4) X(5)
#define EW_ROWS_8(X) EW_ROWS_6(X) X(6) X(7)

#if EW_HAS_PANELS && EW_HAS_DOTS
/* Pixels times a panel of channels. */
typedef struct {
    ew_dot_pixels at;
    const int8_t *weights;
    const int32_t *start; /* of the sums */
    const ew_panel_ending *ending; /* NULL: y are sums that are added to */
    int32_t column, columns; /* of the panel in y */
} ew_panel_job;

#define EW_PANEL_LOAD(i) x##i = vld1q_s8((const int8_t *)x[i] + at);
#define EW_PANEL_DOT(i, lane, a, w) a##i = vdotq_laneq_s32(a##i, w, x##i, lane);

/* Vectors a and b, or a to d, of a panel's channels. */
#define EW_HALF_START(i) int32x4_t a##i = start0, b##i = start1; int8x16_t x##i;
#define EW_HALF_STEP(i, lane) EW_PANEL_DOT(i, lane, a, w0) EW_PANEL_DOT(i, lane, b, w1)
#define EW_HALF_STORE(i) vst1q_s32(sums[i], a##i); vst1q_s32(sums[i] + 4, b##i);
#define EW_HALF_FINISH(i, kind) ew_panel_put(y[i], ew_panel_half(ending, kind, a##i, b##i), job->columns);
#define EW_HALF_WEIGHTS const int8x16_t w0 = vld1q_s8(w), w1 = vld1q_s8(w + 16);
#define EW_FULL_START(i) EW_HALF_START(i) int32x4_t c##i = start2, d##i = start3;
#define EW_FULL_STEP(i, lane) EW_HALF_STEP(i, lane) EW_PANEL_DOT(i, lane, c, w2) EW_PANEL_DOT(i, lane, d, w3)
#define EW_FULL_STORE(i) EW_HALF_STORE(i) vst1q_s32(sums[i] + 8, c##i); vst1q_s32(sums[i] + 12, d##i);
#define EW_FULL_FINISH(i, kind) ew_panel_put(y[i], ew_panel_bytes(ending, kind, a##i, b##i, c##i, d##i), job->columns);
#define EW_FULL_WEIGHTS EW_HALF_WEIGHTS const int8x16_t w2 = vld1q_s8(w + 32), w3 = vld1q_s8(w + 48);

#define EW_HALF_LANE_0(i) EW_HALF_STEP(i, 0)
#define EW_HALF_LANE_1(i) EW_HALF_STEP(i, 1)
#define EW_HALF_LANE_2(i) EW_HALF_STEP(i, 2)
#define EW_HALF_LANE_3(i) EW_HALF_STEP(i, 3)
#define EW_FULL_LANE_0(i) EW_FULL_STEP(i, 0)
#define EW_FULL_LANE_1(i) EW_FULL_STEP(i, 1)
#define EW_FULL_LANE_2(i) EW_FULL_STEP(i, 2)
#define EW_FULL_LANE_3(i) EW_FULL_STEP(i, 3)
#define EW_PANEL_FOUR(n, size, lane)                                                            \
    {                                                                                           \
        EW_##size##_WEIGHTS                                                                     \
        EW_ROWS_##n(EW_##size##_LANE_##lane)                                                    \
        w += 4 * EW_PANEL;                                                                      \
    }

#define EW_HALF_FINISH_PLAIN(i) EW_HALF_FINISH(i, EW_PANEL_NO_TIES)
#define EW_HALF_FINISH_TIES(i) EW_HALF_FINISH(i, EW_PANEL_TIES)
#define EW_FULL_FINISH_PLAIN(i) EW_FULL_FINISH(i, EW_PANEL_NO_TIES)
#define EW_FULL_FINISH_TIES(i) EW_FULL_FINISH(i, EW_PANEL_TIES)

/* Whatever else becomes of the sums of some pixels. */
static void ew_panel_other_ends(const ew_panel_job *job, int32_t first, int32_t count, const int32_t (*sums)[EW_PANEL])
{
    for (int32_t n = 0; n < count; n++) {
        const int32_t *const s = sums[n];
        if (job->ending) {
            const uint8x16_t bytes = ew_panel_bytes(
                job->ending, job->ending->kind, vld1q_s32(s), vld1q_s32(s + 4), vld1q_s32(s + 8), vld1q_s32(s + 12));
            ew_panel_put(job->at.y[first + n] + job->column, bytes, job->columns);
        } else {
            int32_t *const to = (int32_t *)(void *)job->at.y[first + n] + job->column;
            for (int32_t i = 0; i < job->columns; i++)
                to[i] += s[i];
        }
    }
}

/* Pixels from `done` on, n at a time while there are as many; the first that is left. Reads up to 12 bytes behind the last
 * of a pixel. */
#define EW_PANEL_PIXELS(n, size)                                                                \
    static int32_t ew_panel_pixels_##size##_##n(const ew_panel_job *job, int32_t done, int32_t count) \
    {                                                                                           \
        const ew_panel_ending *const ending = job->ending;                                      \
        const int32_t kind = ending ? ending->kind : EW_PANEL_REAL;                             \
        const int32_t total = job->at.total, piece = job->at.piece;                                   \
        for (; done + n <= count; done += n) {                                                  \
            const uint8_t *const *const x = job->at.x + done;                                      \
            const int8_t *w = job->weights;                                                     \
            const int32x4_t start0 = vld1q_s32(job->start), start1 = vld1q_s32(job->start + 4); \
            const int32x4_t start2 = vld1q_s32(job->start + 8), start3 = vld1q_s32(job->start + 12); \
            size_t from = 0;                                                                    \
            EW_ROWS_##n(EW_##size##_START)                                                      \
            (void)start2, (void)start3;                                                         \
            for (int32_t left = total; left > 0; left -= piece, from += job->at.apart) {           \
                size_t at = from;                                                               \
                int32_t some = ew_min(piece, left);                                             \
                for (; some >= 16; some -= 16, at += 16) {                                      \
                    EW_ROWS_##n(EW_PANEL_LOAD)                                                  \
                    EW_PANEL_FOUR(n, size, 0)                                                   \
                    EW_PANEL_FOUR(n, size, 1)                                                   \
                    EW_PANEL_FOUR(n, size, 2)                                                   \
                    EW_PANEL_FOUR(n, size, 3)                                                   \
                }                                                                               \
                if (some > 0) {                                                                 \
                    EW_ROWS_##n(EW_PANEL_LOAD)                                                  \
                    EW_PANEL_FOUR(n, size, 0)                                                   \
                    if (some > 4)                                                               \
                        EW_PANEL_FOUR(n, size, 1)                                               \
                    if (some > 8)                                                               \
                        EW_PANEL_FOUR(n, size, 2)                                               \
                }                                                                               \
            }                                                                                   \
            if (kind <= EW_PANEL_TIES) {                                                        \
                uint8_t *y[n];                                                                  \
                for (int32_t i = 0; i < n; i++)                                                 \
                    y[i] = job->at.y[done + i] + job->column;                                      \
                if (kind == EW_PANEL_NO_TIES) {                                                 \
                    EW_ROWS_##n(EW_##size##_FINISH_PLAIN)                                       \
                } else {                                                                        \
                    EW_ROWS_##n(EW_##size##_FINISH_TIES)                                        \
                }                                                                               \
            } else {                                                                            \
                int32_t sums[n][EW_PANEL] = {{0}};                                              \
                EW_ROWS_##n(EW_##size##_STORE)                                                  \
                ew_panel_other_ends(job, done, n, (const int32_t(*)[EW_PANEL])sums);            \
            }                                                                                   \
        }                                                                                       \
        return done;                                                                            \
    }

EW_PANEL_PIXELS(1, HALF)
EW_PANEL_PIXELS(2, HALF)
EW_PANEL_PIXELS(8, HALF)
EW_PANEL_PIXELS(1, FULL)
EW_PANEL_PIXELS(2, FULL)
EW_PANEL_PIXELS(4, FULL)

#if defined(__GNUC__)
#define EW_APART __attribute__((noinline)) /* where the job is in sight, GCC takes more registers for it than there are */
#else
#define EW_APART
#endif

/* All channels of `count` pixels. */
EW_APART static void ew_panel_pixels(const ew_simd_int8 *conv, ew_panel_job *job, int32_t count)
{
    const int32_t kind = conv->is_share ? EW_PANEL_REAL : ew_panel_kind(&conv->finish, conv->channels);
    job->weights = conv->weights;
    for (int32_t column = 0; column < conv->channels; column += EW_PANEL, job->weights += (size_t)job->at.total * EW_PANEL) {
        ew_panel_ending ending;
        job->column = column;
        job->columns = ew_min(EW_PANEL, conv->channels - column);
        job->start = conv->start + column;
        job->ending = conv->is_share ? NULL : &ending;
        if (!conv->is_share)
            ending = ew_panel_prepared(&conv->finish, kind, column);
        if (job->columns <= 8)
            ew_panel_pixels_HALF_1(job, ew_panel_pixels_HALF_2(job, ew_panel_pixels_HALF_8(job, 0, count), count), count);
        else
            ew_panel_pixels_FULL_1(job, ew_panel_pixels_FULL_2(job, ew_panel_pixels_FULL_4(job, 0, count), count), count);
    }
}

void ew_dot_pixels_run(const ew_simd_int8 *conv, const ew_dot_pixels *at, int32_t count)
{
    ew_panel_job job;
    job.at = *at;
    ew_panel_pixels(conv, &job, count);
}
#else
/* Pixels times two vectors of channels. */
typedef struct {
    ew_dot_pixels at;
    const int8_t *first, *second; /* weights */
    const int32_t *start[2]; /* of the sums */
    const ew_simd_finish *finish; /* NULL: y are sums that are added to */
    int32_t kind; /* of both endings */
    ew_simd_rounding roundings[2]; /* for the usual kinds */
    int32_t column, columns; /* of the vectors in y */
} ew_vectors_job;

#define EW_FEW(X) EW_ROWS_1(X) /* pixels at once */
#define EW_FEW_ROWS 1
#if EW_LANES == 16
#define EW_MANY(X) EW_ROWS_8(X)
#define EW_MANY_ROWS 8
#define EW_SOME(X) EW_ROWS_4(X)
#define EW_SOME_ROWS 4
#else
#if defined(__AVXVNNI__)
#define EW_MANY(X) EW_ROWS_6(X)
#define EW_MANY_ROWS 6
#else
#define EW_MANY(X) EW_ROWS_4(X)
#define EW_MANY_ROWS 4
#endif
#define EW_SOME(X) EW_ROWS_2(X)
#define EW_SOME_ROWS 2
#endif

#define EW_ONE_START(i) ew_vi s##i = ew_vi_load(job->start[0]);
#define EW_ONE_WEIGHTS const ew_dot_w w0 = ew_dot_weights(first); first += 4 * EW_PANEL;
#define EW_ONE_STEP(i) s##i = ew_dot(s##i, ew_dot_input(x[i] + at), w0);
#define EW_ONE_STORE(i) ew_vi_store(sums[i], s##i);
#define EW_ONE_PUT(i, kind) ew_simd_put(y[i], ew_simd_rounded(&e0, kind, s##i), job->columns);
#define EW_ONE_UP(i) EW_ONE_PUT(i, EW_ENDING_UP)
#define EW_ONE_AWAY(i) EW_ONE_PUT(i, EW_ENDING_AWAY)
#define EW_TWO_START(i) EW_ONE_START(i) ew_vi t##i = ew_vi_load(job->start[1]);
#define EW_TWO_WEIGHTS EW_ONE_WEIGHTS const ew_dot_w w1 = ew_dot_weights(second); second += 4 * EW_PANEL;
#define EW_TWO_STEP(i) { const ew_dot_x v = ew_dot_input(x[i] + at); s##i = ew_dot(s##i, v, w0); t##i = ew_dot(t##i, v, w1); }
#define EW_TWO_STORE(i) EW_ONE_STORE(i) ew_vi_store(sums[i] + EW_LANES, t##i);
#define EW_TWO_PUT(i, kind)                                                                     \
    ew_simd_put(y[i], ew_simd_rounded(&e0, kind, s##i), EW_LANES);                              \
    ew_simd_put(y[i] + EW_LANES, ew_simd_rounded(&e1, kind, t##i), job->columns - EW_LANES);
#define EW_TWO_UP(i) EW_TWO_PUT(i, EW_ENDING_UP)
#define EW_TWO_AWAY(i) EW_TWO_PUT(i, EW_ENDING_AWAY)

/* Whatever else becomes of the sums of some pixels. */
static void ew_vectors_other_ends(
    const ew_vectors_job *job, int32_t first, int32_t count, const int32_t (*sums)[2 * EW_LANES])
{
    for (int32_t i = 0; i < job->columns && job->finish; i += EW_LANES) {
        const ew_simd_ending ending = ew_simd_prepared(job->finish, job->column + i);
        for (int32_t n = 0; n < count; n++)
            ew_simd_put(
                job->at.y[first + n] + job->column + i, ew_simd_stored(&ending, ew_vi_load(sums[n] + i)), job->columns - i);
    }
    for (int32_t n = 0; n < count && !job->finish; n++) {
        int32_t *const y = (int32_t *)(void *)job->at.y[first + n] + job->column;
        for (int32_t i = 0; i < job->columns; i++)
            y[i] += sums[n][i];
    }
}

/* The sums of so many pixels from `done` on are finished. */
#define EW_VECTORS_END(many, size)                                                              \
    if (kind <= EW_ENDING_AWAY) {                                                               \
        const ew_simd_rounding e0 = job->roundings[0], e1 = job->roundings[1];                  \
        uint8_t *y[EW_##many##_ROWS];                                                           \
        (void)e1;                                                                               \
        for (int32_t i = 0; i < EW_##many##_ROWS; i++)                                          \
            y[i] = job->at.y[done + i] + job->column;                                           \
        if (kind == EW_ENDING_UP) {                                                             \
            EW_##many(EW_##size##_UP)                                                           \
        } else {                                                                                \
            EW_##many(EW_##size##_AWAY)                                                         \
        }                                                                                       \
    } else {                                                                                    \
        int32_t sums[EW_##many##_ROWS][2 * EW_LANES];                                           \
        EW_##many(EW_##size##_STORE)                                                            \
        ew_vectors_other_ends(                                                                  \
            job, done, EW_##many##_ROWS, (const int32_t(*)[2 * EW_LANES])sums);                 \
    }

/* Pixels from `done` on, so many at a time while there are as many; the first that is left. */
#define EW_VECTORS(many, size)                                                                  \
    static int32_t ew_vectors_##size##_##many(const ew_vectors_job *job, int32_t done, int32_t count) \
    {                                                                                           \
        const int32_t total = job->at.total, piece = job->at.piece, kind = job->kind;           \
        for (; done + EW_##many##_ROWS <= count; done += EW_##many##_ROWS) {                    \
            const uint8_t *const *const x = job->at.x + done;                                   \
            const int8_t *first = job->first, *second = job->second;                            \
            size_t from = 0;                                                                    \
            EW_##many(EW_##size##_START)                                                        \
            for (int32_t left = total; left > 0; left -= piece, from += job->at.apart) {        \
                const size_t end = from + (size_t)ew_min(piece, left);                          \
                for (size_t at = from; at < end; at += 4) {                                     \
                    EW_##size##_WEIGHTS                                                         \
                    EW_##many(EW_##size##_STEP)                                                 \
                }                                                                               \
            }                                                                                   \
            (void)second;                                                                       \
            EW_VECTORS_END(many, size)                                                          \
        }                                                                                       \
        return done;                                                                            \
    }

EW_VECTORS(FEW, ONE)
EW_VECTORS(SOME, ONE)
EW_VECTORS(MANY, ONE)
EW_VECTORS(SOME, TWO)
EW_VECTORS(MANY, TWO)

/* One pixel after the other, for instance the only one of a dense layer: fours in turns, so that sums wait less for each
 * other. */
static int32_t ew_vectors_TWO_FEW(const ew_vectors_job *job, int32_t done, int32_t count)
{
    const int32_t total = job->at.total, piece = job->at.piece, kind = job->kind;
    for (; done < count; done++) {
        const uint8_t *const x[2] = {job->at.x[done], job->at.x[done] + 4};
        const int8_t *first = job->first, *second = job->second;
        size_t from = 0;
        EW_ROWS_2(EW_TWO_START)
        s1 = t1 = ew_vi_all(0);
        for (int32_t left = total; left > 0; left -= piece, from += job->at.apart) {
            const size_t end = from + (size_t)ew_min(piece, left);
            size_t at = from;
            for (; at + 8 <= end; at += 8) {
                {
                    EW_TWO_WEIGHTS
                    EW_TWO_STEP(0)
                }
                {
                    EW_TWO_WEIGHTS
                    EW_TWO_STEP(1)
                }
            }
            if (at < end) {
                EW_TWO_WEIGHTS
                EW_TWO_STEP(0)
            }
        }
        s0 = ew_vi_add(s0, s1);
        t0 = ew_vi_add(t0, t1);
        EW_VECTORS_END(FEW, TWO)
    }
    return done;
}

void ew_dot_pixels_run(const ew_simd_int8 *conv, const ew_dot_pixels *at, int32_t count)
{
    const ew_simd_finish *const finish = conv->is_share ? NULL : &conv->finish;
    ew_vectors_job job;
    job.at = *at;
    job.finish = finish;
    job.kind = EW_ENDING_REAL;
    for (job.column = 0; job.column < conv->channels; job.column += 2 * EW_LANES) {
        const int32_t next = job.column + EW_LANES, has_next = next < conv->channels; /* tables end with whole panels */
        const size_t panel = (size_t)at->total * EW_PANEL;
        job.columns = ew_min(2 * EW_LANES, conv->channels - job.column);
        job.first = conv->weights + (size_t)(job.column / EW_PANEL) * panel + job.column % EW_PANEL * 4;
        job.second = conv->weights + (size_t)(next / EW_PANEL) * panel + next % EW_PANEL * 4;
        job.start[0] = conv->start + job.column;
        job.start[1] = conv->start + (has_next ? next : job.column);
        if (finish)
            job.kind = ew_max(ew_simd_kind(finish, job.column), has_next ? ew_simd_kind(finish, next) : 0);
        if (job.kind <= EW_ENDING_AWAY) {
            job.roundings[0] = ew_simd_round_once(finish, job.column);
            job.roundings[1] = has_next ? ew_simd_round_once(finish, next) : job.roundings[0];
        }
        if (has_next)
            ew_vectors_TWO_FEW(&job, ew_vectors_TWO_SOME(&job, ew_vectors_TWO_MANY(&job, 0, count), count), count);
        else
            ew_vectors_ONE_FEW(&job, ew_vectors_ONE_SOME(&job, ew_vectors_ONE_MANY(&job, 0, count), count), count);
    }
}
#endif
