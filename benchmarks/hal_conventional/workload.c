/* What the paper exercises (S 6.6): some initialisation and a simple loop over four GPIO pads; a data frame sent over SPI
 * and one received. */
#include "gpio.h"
#include "spi.h"

#define PADS 4u
#define WORDS 2u

uint32_t workload_gpio(void);
uint32_t workload_spi(void);

uint32_t workload_gpio(void)
{
    uint32_t seen = 0;

    for (uint32_t pad = 0; pad < PADS; pad++)
        setup_gpio_pin(pad, true, 0x1f, GPIO_IRQ_RISE, true);
    for (uint32_t pad = 0; pad < PADS; pad++) {
        set_gpio_pin_value(pad, true);
        seen |= (uint32_t)get_gpio_pin_value(pad) << pad;
        set_gpio_pin_value(pad, false);
    }
    return seen;
}

uint32_t workload_spi(void)
{
    uint32_t frame[WORDS] = {0x01234567u, 0x89abcdefu};

    spi_setup_master(1);
    spi_set_clock_divider(4);
    spi_setup_cmd_addr(0x02, 8, 0x100, 24);
    spi_set_datalen(32u * WORDS);
    spi_write_fifo(frame, 32u * WORDS);
    spi_start_transaction(SPI_CMD_WR, 0);

    spi_setup_cmd_addr(0x0b, 8, 0x100, 24);
    spi_setup_dummy(8, 0);
    spi_set_datalen(32u * WORDS);
    spi_start_transaction(SPI_CMD_RD, 0);
    spi_read_fifo(frame, 32u * WORDS);
    return frame[0] + 3u * frame[1] + spi_get_status();
}
