/* Complete sums as stored values, by multipliers that were proven when the code was made. */
#ifndef EW_SHARE_STORE_H
#define EW_SHARE_STORE_H

#include "portable.h"

/* All channels of `count` pixels whose results lie `pixel` bytes apart; their sums lie densely, and a bias that is not
 * part of the offset is added to them. */
void ew_share_store(const ew_products *p, int32_t *sums, void *y, int32_t count, int32_t pixel);

#endif /* EW_SHARE_STORE_H */
