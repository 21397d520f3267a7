/* Timer with four channels on a fixed register map: the same functions as the example. */
#include "pwm_registers.h"

#include <stdbool.h>

void pwm_init(uint16_t prescaler, uint16_t period, bool centred)
{
    PWM_PRESCALER = prescaler;
    PWM_PERIOD = period;
    PWM_CTRL = PWM_CTRL_ENABLE | (centred ? PWM_CTRL_CENTRED : 0u);
}

void pwm_stop(void)
{
    PWM_CTRL &= ~PWM_CTRL_ENABLE;
}

uint16_t pwm_count(void)
{
    return (uint16_t)PWM_COUNT;
}

void pwm_use_interrupt(uint32_t channel, bool wanted)
{
    if (wanted)
        PWM_IRQ |= PWM_CHANNEL(channel);
    else
        PWM_IRQ &= ~PWM_CHANNEL(channel);
}

void pwm_set_width(uint32_t channel, uint16_t compare)
{
    PWM_COMPARE(channel) = compare;
}

uint16_t pwm_width(uint32_t channel)
{
    return (uint16_t)PWM_COMPARE(channel);
}

void pwm_setup(uint32_t channel, uint16_t compare, bool inverted, bool interrupt)
{
    uint32_t output = PWM_OUTPUT | PWM_OUTPUT_ENABLE(channel);

    if (inverted)
        output |= PWM_OUTPUT_INVERTED(channel);
    else
        output &= ~PWM_OUTPUT_INVERTED(channel);
    PWM_COMPARE(channel) = compare;
    pwm_use_interrupt(channel, interrupt);
    PWM_OUTPUT = output;
}

/* Width in parts of 65536 of the period. */
void pwm_set_duty(uint32_t channel, uint16_t duty)
{
    PWM_COMPARE(channel) = (uint16_t)((PWM_PERIOD * duty) >> 16);
}

void pwm_switch(uint32_t channel, bool on)
{
    if (on)
        PWM_OUTPUT |= PWM_OUTPUT_ENABLE(channel);
    else
        PWM_OUTPUT &= ~PWM_OUTPUT_ENABLE(channel);
}

/* Whether the channel has matched since the last call. */
bool pwm_take_match(uint32_t channel)
{
    bool matched = PWM_STATUS & PWM_CHANNEL(channel);

    if (matched)
        PWM_STATUS = PWM_CHANNEL(channel);
    return matched;
}
