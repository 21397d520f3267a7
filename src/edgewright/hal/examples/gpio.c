/* GPIO, in the manner of PULPino's: what each pad has, not where it lies.
 *
 * Shows: nested groups and arrays (S 6.3.1), dynamic indices, a pointer to a group, ro, clear_on_read, reset_value.
 * A pad is written field by field in some functions and all at once in setup_gpio_pin: the layout serves both.
 */
#include "edgewright_hal.h"
#include "gpio.h"

bfGroup GPIOPad {
    bit reset_value(1) function; /* 0: the peripheral wired to the pad, 1: GPIO */
    bit dir;                     /* 0: in, 1: out */
    bit out;
    bit ro in;
    bit intEn;
    uint2 intType;
    uint8 cfg; /* pull, slew and drive strength */
};

bfGroup GPIOType {
    bfGroup GPIOPad pads[32];
    uint32 ro clear_on_read intStatus; /* a bit for each pad */
};

make_device(GPIOType, gpio, 0x1a101000);

void set_pin_function(uint32_t pin, bool function)
{
    gpio->pads[pin].function = function;
}

bool get_pin_function(uint32_t pin)
{
    return gpio->pads[pin].function;
}

void set_gpio_pin_direction(uint32_t pin, bool output)
{
    gpio->pads[pin].dir = output;
}

bool get_gpio_pin_direction(uint32_t pin)
{
    return gpio->pads[pin].dir;
}

void set_gpio_pin_value(uint32_t pin, bool value)
{
    gpio->pads[pin].out = value;
}

bool get_gpio_pin_value(uint32_t pin)
{
    return gpio->pads[pin].in;
}

void set_gpio_pin_irq_type(uint32_t pin, uint8_t type)
{
    gpio->pads[pin].intType = type;
}

uint8_t get_gpio_pin_irq_type(uint32_t pin)
{
    return gpio->pads[pin].intType;
}

void set_gpio_pin_irq_en(uint32_t pin, bool enable)
{
    gpio->pads[pin].intEn = enable;
}

bool get_gpio_pin_irq_en(uint32_t pin)
{
    return gpio->pads[pin].intEn;
}

void set_gpio_pin_config(uint32_t pin, uint8_t config)
{
    gpio->pads[pin].cfg = config;
}

uint8_t get_gpio_pin_config(uint32_t pin)
{
    return gpio->pads[pin].cfg;
}

uint32_t get_gpio_irq_status(void)
{
    return gpio->intStatus;
}

void setup_gpio_pin(uint32_t pin, bool output, uint8_t config, uint8_t irq_type, bool irq_enable)
{
    bfGroup GPIOPad *pad = &gpio->pads[pin];

    pad->function = FUNC_GPIO;
    pad->dir = output;
    pad->cfg = config;
    pad->intType = irq_type;
    pad->intEn = irq_enable;
}
