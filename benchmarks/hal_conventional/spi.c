/* SPI master on PULPino's register map: the same functions as the example, as one writes them for a fixed layout. */
#include "gpio.h"
#include "spi.h"
#include "spi_registers.h"

void spi_setup_slave(void)
{
    for (uint32_t pad = PIN_SSPI_FIRST; pad <= PIN_SSPI_LAST; pad++)
        set_pin_function(pad, FUNC_SPI);
}

void spi_setup_master(uint8_t chip_selects)
{
    for (uint32_t pad = PIN_MSPI_FIRST; pad < PIN_MSPI_CSN0 + chip_selects; pad++)
        set_pin_function(pad, FUNC_SPI);
}

void spi_set_clock_divider(uint8_t divider)
{
    SPI_CLKDIV = divider;
}

void spi_setup_cmd_addr(uint32_t cmd, uint8_t cmd_bits, uint32_t addr, uint8_t addr_bits)
{
    SPI_SPICMD = cmd << (32u - cmd_bits);
    SPI_SPIADR = addr;
    SPI_SPILEN = (cmd_bits & SPI_LEN_CMD_MASK) | (((uint32_t)addr_bits << SPI_LEN_ADDR_SHIFT) & SPI_LEN_ADDR_MASK);
}

void spi_setup_dummy(uint16_t read_cycles, uint16_t write_cycles)
{
    SPI_SPIDUM = ((uint32_t)write_cycles << SPI_DUM_WR_SHIFT) | read_cycles;
}

void spi_set_datalen(uint16_t bits)
{
    uint32_t lengths = SPI_SPILEN & ~SPI_LEN_DATA_MASK;

    SPI_SPILEN = ((uint32_t)bits << SPI_LEN_DATA_SHIFT) | lengths;
}

void spi_setup_irq(uint8_t tx_threshold, uint8_t rx_threshold)
{
    SPI_INTCFG = SPI_INTCFG_EN | (((uint32_t)rx_threshold << SPI_INTCFG_RX_SHIFT) & SPI_INTCFG_RX_MASK) |
                 (tx_threshold & SPI_INTCFG_TX_MASK);
}

void spi_start_transaction(uint8_t command, uint8_t chip_select)
{
    SPI_STATUS = ((1u << (SPI_STATUS_CS_SHIFT + chip_select)) & SPI_STATUS_CS_MASK) | ((1u << command) & SPI_STATUS_START_MASK);
}

uint32_t spi_get_status(void)
{
    uint32_t status = SPI_STATUS;

    return status & SPI_STATUS_STATE_MASK;
}

void spi_write_fifo(const uint32_t *words, uint16_t bits)
{
    uint32_t count = (bits + 31u) / 32u;

    for (uint32_t i = 0; i < count; i++) {
        while (((SPI_STATUS >> SPI_STATUS_TX_SHIFT) & SPI_STATUS_LEVEL_MASK) >= SPI_FIFO_DEPTH) {
        }
        SPI_TXFIFO = words[i];
    }
}

void spi_read_fifo(uint32_t *words, uint16_t bits)
{
    uint32_t count = (bits + 31u) / 32u;

    for (uint32_t i = 0; i < count; i++) {
        while (((SPI_STATUS >> SPI_STATUS_RX_SHIFT) & SPI_STATUS_LEVEL_MASK) == 0u) {
        }
        words[i] = SPI_RXFIFO;
    }
}
