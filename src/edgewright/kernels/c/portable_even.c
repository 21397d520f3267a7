#include "portable_even.h"
#include "fixed.h"

int32_t ew_even_steps(int32_t sum, int32_t bits)
{
    float scale;
    memcpy(&scale, &bits, sizeof scale);
    return ew_round_even((float)sum * scale, -2097152.0f, 2097152.0f);
}
