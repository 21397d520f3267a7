/* Timer with four channels that compare: pulses of variable width, and interrupts.
 *
 * Shows: an array of groups of which a function sets a field or all, w1c flags of each element.
 */
#include "edgewright_hal.h"

#include <stdbool.h>
#include <stdint.h>

bfGroup PwmChannel {
    uint16 compare;
    bit enable, inverted, irqEnable;
    bit w1c matched;
};

bfGroup PwmType {
    bit enable;
    bit centred; /* counts up and down */
    uint16 prescaler;
    uint16 reset_value(0xffff) period;
    uint16 hw count;
    bfGroup PwmChannel channels[4];
};

make_device(PwmType, pwm, 0x1a109000);

void pwm_init(uint16_t prescaler, uint16_t period, bool centred)
{
    pwm->prescaler = prescaler;
    pwm->period = period;
    pwm->centred = centred;
    pwm->enable = 1;
}

void pwm_stop(void)
{
    pwm->enable = 0;
}

uint16_t pwm_count(void)
{
    return pwm->count;
}

void pwm_setup(uint32_t channel, uint16_t compare, bool inverted, bool interrupt)
{
    bfGroup PwmChannel *it = &pwm->channels[channel];

    it->compare = compare;
    it->inverted = inverted;
    it->irqEnable = interrupt;
    it->enable = 1;
}

void pwm_set_width(uint32_t channel, uint16_t compare)
{
    pwm->channels[channel].compare = compare;
}

uint16_t pwm_width(uint32_t channel)
{
    return pwm->channels[channel].compare;
}

/* Width in parts of 65536 of the period. */
void pwm_set_duty(uint32_t channel, uint16_t duty)
{
    uint32_t period = pwm->period;

    pwm->channels[channel].compare = (uint16_t)((period * duty) >> 16);
}

void pwm_switch(uint32_t channel, bool on)
{
    pwm->channels[channel].enable = on;
}

void pwm_use_interrupt(uint32_t channel, bool wanted)
{
    pwm->channels[channel].irqEnable = wanted;
}

/* Whether the channel has matched since the last call. */
bool pwm_take_match(uint32_t channel)
{
    bfGroup PwmChannel *it = &pwm->channels[channel];
    bool matched = it->matched;

    if (matched)
        it->matched = 1;
    return matched;
}
