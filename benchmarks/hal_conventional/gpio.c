/* GPIO on PULPino's register map: the same functions as the example, as one writes them for a fixed layout. */
#include "gpio.h"
#include "gpio_registers.h"

void set_pin_function(uint32_t pin, bool function)
{
    uint32_t functions = GPIO_PADFUN;

    if (function)
        functions |= 1u << pin;
    else
        functions &= ~(1u << pin);
    GPIO_PADFUN = functions;
}

bool get_pin_function(uint32_t pin)
{
    uint32_t functions = GPIO_PADFUN;

    return (functions >> pin) & 1u;
}

void set_gpio_pin_direction(uint32_t pin, bool output)
{
    uint32_t directions = GPIO_PADDIR;

    if (output)
        directions |= 1u << pin;
    else
        directions &= ~(1u << pin);
    GPIO_PADDIR = directions;
}

bool get_gpio_pin_direction(uint32_t pin)
{
    uint32_t directions = GPIO_PADDIR;

    return (directions >> pin) & 1u;
}

void set_gpio_pin_value(uint32_t pin, bool value)
{
    uint32_t values = GPIO_PADOUT;

    if (value)
        values |= 1u << pin;
    else
        values &= ~(1u << pin);
    GPIO_PADOUT = values;
}

bool get_gpio_pin_value(uint32_t pin)
{
    uint32_t values = GPIO_PADIN;

    return (values >> pin) & 1u;
}

void set_gpio_pin_irq_type(uint32_t pin, uint8_t type)
{
    uint32_t type0 = GPIO_INTTYPE0;
    uint32_t type1 = GPIO_INTTYPE1;

    if (type & GPIO_INTTYPE0_BIT)
        type0 |= 1u << pin;
    else
        type0 &= ~(1u << pin);
    if (type & GPIO_INTTYPE1_BIT)
        type1 |= 1u << pin;
    else
        type1 &= ~(1u << pin);
    GPIO_INTTYPE0 = type0;
    GPIO_INTTYPE1 = type1;
}

uint8_t get_gpio_pin_irq_type(uint32_t pin)
{
    uint32_t type0 = (GPIO_INTTYPE0 >> pin) & 1u;
    uint32_t type1 = (GPIO_INTTYPE1 >> pin) & 1u;

    return (uint8_t)((type1 << 1) | type0);
}

void set_gpio_pin_irq_en(uint32_t pin, bool enable)
{
    uint32_t enables = GPIO_INTEN;

    if (enable)
        enables |= 1u << pin;
    else
        enables &= ~(1u << pin);
    GPIO_INTEN = enables;
}

bool get_gpio_pin_irq_en(uint32_t pin)
{
    uint32_t enables = GPIO_INTEN;

    return (enables >> pin) & 1u;
}

void set_gpio_pin_config(uint32_t pin, uint8_t config)
{
    uint32_t shift = GPIO_PADCFG_SHIFT(pin);
    uint32_t configs = GPIO_PADCFG(pin) & ~(GPIO_PADCFG_MASK << shift);

    GPIO_PADCFG(pin) = configs | ((uint32_t)config << shift);
}

uint8_t get_gpio_pin_config(uint32_t pin)
{
    uint32_t configs = GPIO_PADCFG(pin);

    return (uint8_t)(configs >> GPIO_PADCFG_SHIFT(pin));
}

uint32_t get_gpio_irq_status(void)
{
    return GPIO_INTSTATUS;
}

void setup_gpio_pin(uint32_t pin, bool output, uint8_t config, uint8_t irq_type, bool irq_enable)
{
    set_pin_function(pin, FUNC_GPIO);
    set_gpio_pin_direction(pin, output);
    set_gpio_pin_config(pin, config);
    set_gpio_pin_irq_type(pin, irq_type);
    set_gpio_pin_irq_en(pin, irq_enable);
}
