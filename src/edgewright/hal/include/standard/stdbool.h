/* Stand-in for parsing without a compiler's own headers (32-bit world). */
#ifndef EDGEWRIGHT_STDBOOL_H
#define EDGEWRIGHT_STDBOOL_H

#define bool _Bool
#define true 1
#define false 0
#define __bool_true_false_are_defined 1

#endif
