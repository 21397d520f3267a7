/* General-purpose inputs and outputs: 32 pads. */
#ifndef GPIO_H
#define GPIO_H

#include <stdbool.h>
#include <stdint.h>

#define GPIO_PADS 32u

enum pad_function { FUNC_SPI = 0, FUNC_GPIO = 1 };
enum pad_irq { GPIO_IRQ_LEV0 = 0, GPIO_IRQ_LEV1 = 1, GPIO_IRQ_RISE = 2, GPIO_IRQ_FALL = 3 };

void set_pin_function(uint32_t pin, bool function);
bool get_pin_function(uint32_t pin);
void set_gpio_pin_direction(uint32_t pin, bool output);
bool get_gpio_pin_direction(uint32_t pin);
void set_gpio_pin_value(uint32_t pin, bool value);
bool get_gpio_pin_value(uint32_t pin);
void set_gpio_pin_irq_type(uint32_t pin, uint8_t type);
uint8_t get_gpio_pin_irq_type(uint32_t pin);
void set_gpio_pin_irq_en(uint32_t pin, bool enable);
bool get_gpio_pin_irq_en(uint32_t pin);
void set_gpio_pin_config(uint32_t pin, uint8_t config);
uint8_t get_gpio_pin_config(uint32_t pin);
uint32_t get_gpio_irq_status(void);

/* Makes a pad a GPIO: its direction, pull and drive, and the interrupt it raises. */
void setup_gpio_pin(uint32_t pin, bool output, uint8_t config, uint8_t irq_type, bool irq_enable);

#endif
