/* Part of libraries in which the multipliers of some layer need more than 32 bits to be exact. */
#ifndef EW_PORTABLE_WIDE_H
#define EW_PORTABLE_WIDE_H

#include "portable.h"

#define EW_HAS_WIDE 1

#undef EW_IS_WIDE
#define EW_IS_WIDE(p) ((p).shift == 0xff)

#endif /* EW_PORTABLE_WIDE_H */
