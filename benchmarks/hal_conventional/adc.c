/* ADC with a sequencer on a fixed register map: the same functions as the example. */
#include "adc_registers.h"

#include <stdbool.h>

void adc_init(uint8_t resolution, uint8_t average, bool interrupts)
{
    ADC_CTRL = ADC_CTRL_ENABLE | (interrupts ? ADC_CTRL_IRQ : 0u) |
               (resolution & ADC_CTRL_RESOLUTION_MASK) << ADC_CTRL_RESOLUTION_SHIFT |
               (average & ADC_CTRL_AVERAGE_MASK) << ADC_CTRL_AVERAGE_SHIFT;
}

void adc_set_step(uint32_t step, uint8_t channel, uint8_t sample_time)
{
    uint32_t at = step * ADC_SEQUENCE_BITS;
    uint32_t sequence = ADC_SEQUENCE & ~(ADC_SEQUENCE_MASK << at);

    ADC_SEQUENCE = sequence | (channel & ADC_SEQUENCE_MASK) << at;
    at = step * ADC_SAMPLE_BITS;
    sequence = ADC_SAMPLE & ~(ADC_SAMPLE_MASK << at);
    ADC_SAMPLE = sequence | (sample_time & ADC_SAMPLE_MASK) << at;
}

void adc_set_limits(uint16_t low, uint16_t high)
{
    ADC_LIMITS = (high & ADC_LIMITS_MASK) << ADC_LIMITS_HIGH_SHIFT | (low & ADC_LIMITS_MASK);
    ADC_STATUS = ADC_STATUS_OUTSIDE;
}

void adc_start(uint8_t last, bool repeat)
{
    uint32_t control = ADC_CTRL & ~(ADC_CTRL_LAST_MASK | ADC_CTRL_REPEAT);

    if (repeat)
        control |= ADC_CTRL_REPEAT;
    ADC_CTRL = control | ADC_CTRL_START | (((uint32_t)last << ADC_CTRL_LAST_SHIFT) & ADC_CTRL_LAST_MASK);
}

static void wait(void)
{
    while (ADC_CTRL & ADC_CTRL_START) {
    }
}

void adc_stop(void)
{
    ADC_CTRL &= ~ADC_CTRL_REPEAT;
    wait();
}

/* Waits for the end of the sequence: whether no result was lost. */
bool adc_wait(void)
{
    wait();
    return (ADC_STATUS & ADC_STATUS_OVERRUN) == 0u;
}

uint16_t adc_result(uint32_t step)
{
    return (uint16_t)ADC_RESULT(step);
}

void adc_results(uint16_t *results, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        results[i] = (uint16_t)ADC_RESULT(i);
}

/* One channel, now. */
uint16_t adc_convert(uint8_t channel, uint8_t sample_time)
{
    adc_set_step(0, channel, sample_time);
    adc_start(0, false);
    (void)adc_wait();
    return (uint16_t)ADC_RESULT(0);
}

/* Whether a sequence has ended since the last call. */
bool adc_take_done(void)
{
    bool was_done = ADC_STATUS & ADC_STATUS_DONE;

    if (was_done)
        ADC_STATUS = ADC_STATUS_DONE;
    return was_done;
}

/* Whether a result was outside of the limits since the last call. */
bool adc_take_outside(void)
{
    bool was_outside = ADC_STATUS & ADC_STATUS_OUTSIDE;

    if (was_outside)
        ADC_STATUS = ADC_STATUS_OUTSIDE;
    return was_outside;
}
