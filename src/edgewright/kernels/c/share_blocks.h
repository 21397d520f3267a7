/* Products of a tap, four channels at a time, for cores without vectors. */
#ifndef EW_SHARE_BLOCKS_H
#define EW_SHARE_BLOCKS_H

#include "products.h"
#include "share_window.h"

#define EW_SHARE_FOUR_MORE(centred, mac)                                                                              \
    v = centred(a[0]);                                                                                                \
    s0 = mac(s0, v, b[0]);                                                                                            \
    s1 = mac(s1, v, b[1]);                                                                                            \
    s2 = mac(s2, v, b[2]);                                                                                            \
    s3 = mac(s3, v, b[3]);                                                                                            \
    a++;                                                                                                              \
    b += 4;

/* Weights [block][k][4], with zeros for the channels that the last block lacks. `centred` is an element of x as it is
 * multiplied, `mac` adds a product. */
#define EW_SHARE_BLOCKS(name, type, weight, sum, centred, mac)                                                        \
    EW_OFTEN_RUN void name(const void *x, const void *w, int32_t depth, int32_t zero, void *sums, int32_t channels)   \
    {                                                                                                                 \
        const weight *b = (const weight *)w;                                                                          \
        sum *to = (sum *)sums;                                                                                        \
        (void)zero;                                                                                                   \
        for (; channels > 0; channels -= 4, to += 4) {                                                                \
            const type *a = (const type *)x;                                                                          \
            const weight *const end = b + 4 * depth;                                                                  \
            sum v, s0 = 0, s1 = 0, s2 = 0, s3 = 0;                                                                    \
            if (depth & 1) {                                                                                          \
                EW_SHARE_FOUR_MORE(centred, mac)                                                                      \
            }                                                                                                         \
            while (b != end) {                                                                                        \
                EW_SHARE_FOUR_MORE(centred, mac)                                                                      \
                EW_SHARE_FOUR_MORE(centred, mac)                                                                      \
            }                                                                                                         \
            to[0] += s0;                                                                                              \
            if (channels > 1)                                                                                         \
                to[1] += s1;                                                                                          \
            if (channels > 2)                                                                                         \
                to[2] += s2;                                                                                          \
            if (channels > 3)                                                                                         \
                to[3] += s3;                                                                                          \
        }                                                                                                             \
    }
#define EW_SHARE_MAC(a, x, w) ((a) + (x) * (w))

#endif /* EW_SHARE_BLOCKS_H */
