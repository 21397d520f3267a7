"""Driver sources for the tests of the driver generator, and short ways to analyse them."""

from pathlib import Path

from edgewright.hal.analysis.bodies import read_functions
from edgewright.hal.analysis.colouring import regions_of
from edgewright.hal.analysis.conflicts import Conflicts
from edgewright.hal.language.groups import describe
from edgewright.hal.language.source import read_source

GPIO = """
#include "edgewright_hal.h"

bfGroup GPIOPad {
    bit dir;
    bit in;
    bit out;
    bit intEn;
    uint2 intType;
    uint8 cfg;
};

bfGroup GPIOType {
    bfGroup GPIOPad pads[32];
    uint32 rse(intStatus) intStatus;
};

make_device(GPIOType, gpio, 0x1a101000);

void set_gpio_pin_value(int pinnumber, int value) {
    gpio->pads[pinnumber].out = value;
}

void combine_example(bfGroup GPIOPad *pad) {
    int dir = pad->dir;
    if (pad->intEn && dir)
        pad->dir = gpio->intStatus != 0;
}
"""
GPIO_B = GPIO.replace("rse(intStatus)", "rse(intStatus) rse(GPIOPad::intEn)")

INNER_OUTER = """
#include "edgewright_hal.h"
bfGroup Inner1 { uint8 a; uint8 b; uint8 c; };
bfGroup Inner2 { uint8 d; uint8 e; };
bfGroup Outer { bfGroup Inner1 inner1; bfGroup Inner2 inner2; uint8 f; };
make_device(Outer, outer, 0x1000);
int abc(void) { return outer->inner1.a + outer->inner1.b + outer->inner1.c; }
void set_abc(int v) { outer->inner1.a = v; outer->inner1.b = v; outer->inner1.c = v; }
int ac1(void) { return outer->inner1.a + outer->inner1.c; }
int ac2(void) { return outer->inner1.a - outer->inner1.c; }
int de1(void) { return outer->inner2.d + outer->inner2.e; }
int de2(void) { return outer->inner2.d - outer->inner2.e; }
int de3(void) { return outer->inner2.d * outer->inner2.e; }
int de4(void) { return outer->inner2.d ^ outer->inner2.e; }
void set_de(int v) { outer->inner2.d = v; outer->inner2.e = v; }
void set_f(int v) { outer->f = v; }
"""

GROUPS = """
#include "edgewright_hal.h"
bfGroup Part { bit a; bit b; uint4 c; uint8 d; uint8 arr[4]; };
bfGroup Dev {
    bfGroup Part part[4];
    uint8 x;
    uint8 y;
    uint8 rse(count) count;
    uint8 ro status;
    uint8 fifo data;
    bit wse(go) go;
    bit wse(x) clear_x;
    uint8 rse(y) lock;
    uint8 w1c flags;
    bit w1c error;
    bit w1s again[2];
};
make_device(Dev, dev, 0x1000);
make_device(Dev, twin, 0x2000);
extern void unknown(void);
static int sum(int a, int b) { return a + b; }
static int global_index;
static void next(void) { global_index++; }
"""


class Checked:
    """One function of a source: its accesses by text, which of them conflict, and its regions."""

    def __init__(self, tmp_path: Path, body: str, head: str = GROUPS, name: str = "f") -> None:
        path = tmp_path / "driver.c"
        path.write_text(head + body)
        source = read_source([path])
        description = describe(source)
        function = next(f for f in read_functions(source, description) if f.name == name)
        found = regions_of(Conflicts(function, description))
        self.function = function
        self.conflicts = {(c.first, c.second): c.reason for c in found.conflicts}
        self.regions = [[self.said(n) for n in region] for region in found.regions]

    def said(self, number: int) -> str:
        access = self.function.accesses[number]
        return f"{access.kind.value} {access.name.split('->')[-1].split('.')[-1]}"

    def why(self, first: int, second: int) -> str | None:
        return self.conflicts.get((first, second))
