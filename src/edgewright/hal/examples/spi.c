/* SPI master, in the manner of PULPino's.
 *
 * Shows: FIFOs, write-only fields whose writing starts something (wo, wse), status that hardware changes (ro).
 * The pads are another driver's, so they are set up through its functions.
 */
#include "edgewright_hal.h"
#include "gpio.h"
#include "spi.h"

bfGroup SPIType {
    uint7 ro state; /* one bit for each phase; bit 0: idle */
    uint5 ro rxLevel, txLevel;
    uint5 wo wse(state, rxLevel, txLevel) start; /* a bit for each command */
    uint4 chipSelect;
    uint8 clkDiv;
    uint32 cmd; /* left-aligned */
    uint32 addr;
    uint6 cmdLen, addrLen;
    uint16 dataLen, dummyRd, dummyWr;
    uint32 fifo rse(rxLevel) wse(txLevel) data; /* writing sends, reading receives */
    uint5 irqTx, irqRx;
    bit irqEn;
};

make_device(SPIType, spi, 0x1a102000);

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
    spi->clkDiv = divider;
}

void spi_setup_cmd_addr(uint32_t cmd, uint8_t cmd_bits, uint32_t addr, uint8_t addr_bits)
{
    spi->cmd = cmd << (32u - cmd_bits);
    spi->addr = addr;
    spi->cmdLen = cmd_bits;
    spi->addrLen = addr_bits;
}

void spi_setup_dummy(uint16_t read_cycles, uint16_t write_cycles)
{
    spi->dummyRd = read_cycles;
    spi->dummyWr = write_cycles;
}

void spi_set_datalen(uint16_t bits)
{
    spi->dataLen = bits;
}

void spi_setup_irq(uint8_t tx_threshold, uint8_t rx_threshold)
{
    spi->irqTx = tx_threshold;
    spi->irqRx = rx_threshold;
    spi->irqEn = 1;
}

void spi_start_transaction(uint8_t command, uint8_t chip_select)
{
    spi->chipSelect = (uint8_t)(1u << chip_select);
    spi->start = (uint8_t)(1u << command);
}

uint32_t spi_get_status(void)
{
    return spi->state;
}

void spi_write_fifo(const uint32_t *words, uint16_t bits)
{
    uint32_t count = (bits + 31u) / 32u;

    for (uint32_t i = 0; i < count; i++) {
        while (spi->txLevel >= SPI_FIFO_DEPTH) {
        }
        spi->data = words[i];
    }
}

void spi_read_fifo(uint32_t *words, uint16_t bits)
{
    uint32_t count = (bits + 31u) / 32u;

    for (uint32_t i = 0; i < count; i++) {
        while (spi->rxLevel == 0u) {
        }
        words[i] = spi->data;
    }
}
