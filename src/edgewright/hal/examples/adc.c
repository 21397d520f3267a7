/* ADC with a sequencer: eight steps, each with a channel, a time to sample and a result.
 *
 * Shows: an array of groups whose elements are set as a whole, fields that software sets and hardware clears.
 */
#include "edgewright_hal.h"

#include <stdbool.h>
#include <stdint.h>

bfGroup AdcStep {
    uint4 channel;
    uint3 sampleTime;
    uint12 ro result;
};

bfGroup AdcType {
    bit enable;
    uint2 resolution;
    uint2 average; /* of 1, 2, 4 or 8 */
    bit irqEnable, repeat;
    uint3 last; /* step */
    bit hw start; /* until the sequence has ended */
    bit w1c done;
    bit ro overrun; /* in the last sequence */
    bit w1c outside;
    uint12 low;
    uint12 reset_value(0xfff) high;
    bfGroup AdcStep steps[8];
};

make_device(AdcType, adc, 0x1a107000);

void adc_init(uint8_t resolution, uint8_t average, bool interrupts)
{
    adc->resolution = resolution;
    adc->average = average;
    adc->irqEnable = interrupts;
    adc->repeat = 0;
    adc->last = 0;
    adc->enable = 1;
}

void adc_set_step(uint32_t step, uint8_t channel, uint8_t sample_time)
{
    adc->steps[step].channel = channel;
    adc->steps[step].sampleTime = sample_time;
}

void adc_set_limits(uint16_t low, uint16_t high)
{
    adc->low = low;
    adc->high = high;
    adc->outside = 1;
}

void adc_start(uint8_t last, bool repeat)
{
    adc->last = last;
    adc->repeat = repeat;
    adc->start = 1;
}

void adc_stop(void)
{
    adc->repeat = 0;
    while (adc->start) {
    }
}

/* Waits for the end of the sequence: whether no result was lost. */
bool adc_wait(void)
{
    while (adc->start) {
    }
    return !adc->overrun;
}

uint16_t adc_result(uint32_t step)
{
    return adc->steps[step].result;
}

void adc_results(uint16_t *results, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        results[i] = adc->steps[i].result;
}

/* One channel, now. */
uint16_t adc_convert(uint8_t channel, uint8_t sample_time)
{
    adc_set_step(0, channel, sample_time);
    adc_start(0, false);
    (void)adc_wait();
    return adc->steps[0].result;
}

/* Whether a sequence has ended since the last call. */
bool adc_take_done(void)
{
    bool was_done = adc->done;

    if (was_done)
        adc->done = 1;
    return was_done;
}

/* Whether a result was outside of the limits since the last call. */
bool adc_take_outside(void)
{
    bool was_outside = adc->outside;

    if (was_outside)
        adc->outside = 1;
    return was_outside;
}
