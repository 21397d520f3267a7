/* Timer: two counters that compare, and a clock of microseconds that is latched when its low half is read.
 *
 * Shows: reads that prepare other reads (rse of a neighbour), counters that hardware moves (hw), w1c, fields wider than
 * the bus (split), a field pinned to an address, a nested array that is indexed at run time.
 */
#include "edgewright_hal.h"

#include <stdbool.h>

bfGroup TimerChannel {
    bit enable, oneShot;
    uint3 prescaler;
    uint32 hw count;
    uint32 reset_value(0xffffffff) compare;
    bit w1c matched;
    bit irqEnable;
};

bfGroup TimerType {
    uint16 ro reset_value(0x71e5) pin(0, 0) identity; /* what boot code of every version looks for */
    uint32 ro rse(nowHigh) nowLow;                    /* reading it stores the upper half away */
    uint32 ro nowHigh;
    uint64 split alarm;
    bit alarmEnable;
    bfGroup TimerChannel channels[2];
};

make_device(TimerType, timer, 0x1a103000);

bool timer_is_there(void)
{
    return timer->identity == 0x71e5u;
}

uint64_t timer_now(void)
{
    uint32_t low = timer->nowLow;

    return ((uint64_t)timer->nowHigh << 32) | low;
}

void timer_set_alarm(uint64_t when)
{
    timer->alarmEnable = 0;
    timer->alarm = when;
    timer->alarmEnable = 1;
}

void timer_start(uint32_t channel, uint32_t ticks, uint8_t prescaler, bool repeat)
{
    bfGroup TimerChannel *it = &timer->channels[channel];

    it->enable = 0;
    it->count = 0;
    it->compare = ticks;
    it->matched = 1;
    it->prescaler = prescaler;
    it->oneShot = !repeat;
    it->irqEnable = 1;
    it->enable = 1;
}

uint32_t timer_stop(uint32_t channel)
{
    timer->channels[channel].enable = 0;
    return timer->channels[channel].count;
}

/* Whether the channel has matched since the last call. */
bool timer_matched(uint32_t channel)
{
    bool matched = timer->channels[channel].matched;

    if (matched)
        timer->channels[channel].matched = 1;
    return matched;
}

void timer_wait(uint32_t channel)
{
    while (!timer->channels[channel].matched) {
    }
    timer->channels[channel].matched = 1;
}
