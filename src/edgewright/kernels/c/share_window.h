/* Shares of convolutions in plain C: what a window covers of some channels of x is added tap by tap. */
#ifndef EW_SHARE_WINDOW_H
#define EW_SHARE_WINDOW_H

#include "base.h"

/* Adds `depth` elements of x, less `zero`, times the weights of `channels` channels to their running sums. */
typedef void ew_share_tap(const void *x, const void *w, int32_t depth, int32_t zero, void *sums, int32_t channels);

/* An element of x as such a function multiplies it. */
#define EW_SHARE_CENTRED(v) ((v)-zero)
#define EW_SHARE_REAL(v) (v)

/* Distances are in bytes. */
typedef struct {
    const void *weights;
    ew_share_tap *tap;
    ew_image x, y; /* y: the sums */
    int32_t height, width, depth; /* of x */
    int32_t kernel_h, kernel_w, stride_h, stride_w, dilation_h, dilation_w, pad_h, pad_w;
    int32_t next; /* from the weights of a tap to those of the next */
    int32_t zero; /* of x */
    int32_t channels;
} ew_share_window;

void ew_share_windows(const ew_share_window *p, const void *x, void *sums, const ew_part *part);

#endif /* EW_SHARE_WINDOW_H */
