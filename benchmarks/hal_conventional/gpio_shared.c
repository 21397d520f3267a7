/* GPIO on PULPino's register map: the same functions as the example, with what they share in one place. */
#include "gpio.h"
#include "gpio_registers.h"

/* One function for all registers with a bit for each pad: the least code, and a call for each access. */
static void write_bit(volatile uint32_t *reg, uint32_t pin, bool value)
{
    uint32_t others = *reg & ~(1u << pin);

    *reg = others | ((uint32_t)value << pin);
}

void set_pin_function(uint32_t pin, bool function)
{
    write_bit(&GPIO_PADFUN, pin, function);
}

bool get_pin_function(uint32_t pin)
{
    uint32_t functions = GPIO_PADFUN;

    return (functions >> pin) & 1u;
}

void set_gpio_pin_direction(uint32_t pin, bool output)
{
    write_bit(&GPIO_PADDIR, pin, output);
}

bool get_gpio_pin_direction(uint32_t pin)
{
    uint32_t directions = GPIO_PADDIR;

    return (directions >> pin) & 1u;
}

void set_gpio_pin_value(uint32_t pin, bool value)
{
    write_bit(&GPIO_PADOUT, pin, value);
}

bool get_gpio_pin_value(uint32_t pin)
{
    uint32_t values = GPIO_PADIN;

    return (values >> pin) & 1u;
}

void set_gpio_pin_irq_type(uint32_t pin, uint8_t type)
{
    write_bit(&GPIO_INTTYPE0, pin, type & 1u);
    write_bit(&GPIO_INTTYPE1, pin, (type >> 1) & 1u);
}

uint8_t get_gpio_pin_irq_type(uint32_t pin)
{
    uint32_t type0 = (GPIO_INTTYPE0 >> pin) & 1u;
    uint32_t type1 = (GPIO_INTTYPE1 >> pin) & 1u;

    return (uint8_t)((type1 << 1) | type0);
}

void set_gpio_pin_irq_en(uint32_t pin, bool enable)
{
    write_bit(&GPIO_INTEN, pin, enable);
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
