/* Layers that multiply int8, as their kernels see them. Sums are of what is stored: zero points are part of the bias,
 * or of the offset. */
#ifndef EW_PRODUCTS_H
#define EW_PRODUCTS_H

#include "base.h"
#include "requant.h"

/* A few hundred bytes that run for most of the time are worth some more than the rest. Scheduling before registers
 * are given away would need more of them than there are. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__OPTIMIZE__)
#define EW_OFTEN_RUN __attribute__((optimize("O2", "no-schedule-insns")))
#else
#define EW_OFTEN_RUN
#endif
#if defined(__GNUC__)
#define EW_APART __attribute__((noinline)) /* so that each loop has the registers for itself */
#else
#define EW_APART
#endif

/* A layer's weights, and how its sums become bytes (see requant.h): proven, when the code was made, to store what the
 * reference stores for every sum. */
typedef struct {
    const int8_t *weights;
    const int32_t *bias;       /* of each channel, or NULL: part of the offset */
    const int32_t *multiplier; /* of each channel */
    const int32_t *offset;     /* of each channel */
    const int32_t *drop;       /* of each channel, or NULL */
    int32_t depth;             /* products in a sum */
    int32_t channels;
    int16_t low, high;
    uint8_t left, shift;
#ifdef EW_HAS_VIEWS
    int32_t pitch; /* weights from a channel to the next, on average of those that share a row */
#endif
} ew_products;

#ifdef EW_HAS_VIEWS
#define EW_PRODUCTS_PITCH(p) (p)->pitch
#else
#define EW_PRODUCTS_PITCH(p) (p)->depth
#endif

/* The bias of up to sixteen channels from `channel` on. */
EW_INLINE const int32_t *ew_products_bias(const ew_products *p, int32_t channel)
{
    static const int32_t none[16] = {0};
    return p->bias ? p->bias + channel : none;
}

/* A window that moves over an image of bytes, and what comes out. */
typedef struct {
    ew_products products;
    ew_image x, y;
    int16_t height, width, depth; /* of x */
    int16_t kernel_h, kernel_w, stride_h, stride_w, dilation_h, dilation_w, pad_h, pad_w;
    int8_t zero;         /* the byte that padding consists of, after `flip` */
    uint8_t flip;        /* 0x80 turns uint8 into int8 */
    uint8_t pixels;      /* gathered at once: 4, or 1 where there is no room for more; 0: read as they lie */
    uint8_t is_backward; /* from the last pixel to the first */
    uint8_t has_runs;    /* a line of a window lies side by side */
#ifdef EW_HAS_SPLIT
    uint8_t is_split; /* columns hold four channels of all taps, then the next four */
#endif
} ew_convolution;

#ifdef EW_HAS_SPLIT
/* Bytes of a split column from four channels of a tap to its next four. */
EW_INLINE int32_t ew_split_jump(const ew_convolution *p) { return 4 * p->kernel_h * p->kernel_w; }
#endif

/* `part` of an output, as an argument. */
EW_INLINE ew_part ew_part_of(int32_t top, int32_t bottom, int32_t left, int32_t right)
{
    ew_part part;
    part.top = top;
    part.bottom = bottom;
    part.left = left;
    part.right = right;
    return part;
}

#endif /* EW_PRODUCTS_H */
