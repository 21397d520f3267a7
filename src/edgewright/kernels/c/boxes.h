/* Boxes of detectors: which of those that overlap are kept. */
#ifndef EW_BOXES_H
#define EW_BOXES_H

#include "base.h"

/* A tensor of boxes: two corners each, (y, x, y, x); elements from one box to the next, and from one number to the next. */
typedef struct {
    const float *first;
    int32_t row, column;
} ew_boxes;

static inline float ew_box_end(const ew_boxes *boxes, int32_t i, int32_t axis, int32_t is_far)
{
    const float *const at = boxes->first + i * boxes->row + axis * boxes->column;
    const float a = at[0], b = at[2 * boxes->column];
    return is_far ? (a > b ? a : b) : (a < b ? a : b);
}

/* The area that two boxes share, as part of what they cover together. */
static inline float ew_box_overlap(const ew_boxes *boxes, int32_t i, int32_t j)
{
    float shared = 1.0f, one = 1.0f, other = 1.0f;
    for (int32_t axis = 0; axis < 2; axis++) {
        const float a = ew_box_end(boxes, i, axis, 0), b = ew_box_end(boxes, i, axis, 1);
        const float c = ew_box_end(boxes, j, axis, 0), d = ew_box_end(boxes, j, axis, 1);
        const float common = (b < d ? b : d) - (a > c ? a : c);
        one *= b - a;
        other *= d - c;
        shared *= common > 0.0f ? common : 0.0f;
    }
    return one <= 0.0f || other <= 0.0f ? 0.0f : shared / (one + other - shared);
}

/* The best `wanted` of `count` boxes, none of which overlaps a better one by more than `most`; then -1.
 * Each is the best of those that come after the one before: a pass over the scores for each, and no memory. */
static inline void ew_select_boxes(const ew_boxes *boxes, const float *scores, int32_t step, int32_t count, float least,
                                   float most, int32_t wanted, int32_t *found)
{
    int32_t kept = 0, last = -1;
    for (int32_t round = 0; round < count && kept < wanted; round++) {
        int32_t best = -1, is_apart = 1;
        for (int32_t i = 0; i < count; i++) {
            const float score = scores[i * step];
            const int32_t is_left =
                last < 0 || score < scores[last * step] || (score <= scores[last * step] && i > last);
            if (score >= least && is_left && (best < 0 || score > scores[best * step]))
                best = i;
        }
        if (best < 0)
            break;
        for (int32_t i = 0; i < kept && is_apart; i++)
            is_apart = !(ew_box_overlap(boxes, found[i], best) > most);
        if (is_apart)
            found[kept++] = best;
        last = best;
    }
    for (; kept < wanted; kept++)
        found[kept] = -1;
}

#endif
