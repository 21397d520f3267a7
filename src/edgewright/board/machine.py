"""The machines that QEMU emulates: their memory map and clock."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..errors import EdgewrightError
from ..platform.target import Architecture, Target

KIB, MIB = 1 << 10, 1 << 20


@dataclass(frozen=True, slots=True)
class Bank:
    origin: int
    size: int


@dataclass(frozen=True, slots=True)
class EmulatedMachine:
    """`code` holds vectors and flash, `ram` stack and arenas; `spare` holds whatever does not fit there."""

    name: str  # the value of -machine
    emulator: str
    options: tuple[str, ...]
    code: Bank
    ram: Bank
    spare: Bank
    fpgaio: int = 0  # address of the block with the seconds and the fast counter; 0: instructions are counted
    counter_hz: int = 0  # of the fast counter
    shift: int = 0  # an instruction takes 2 ** shift ns of emulated time
    cores: int = 1
    system_control: int = 0  # address of the registers that release further cores

    def instructions(self, earlier: tuple[int, int], later: tuple[int, int]) -> int:
        """Instructions executed between two stamps.

        The fast counter makes several steps per instruction but wraps at 32 bits; the seconds resolve the wraps.
        """
        (high0, low0), (high1, low1) = earlier, later
        if not self.fpgaio:
            return ((high1 << 32) + low1) - ((high0 << 32) + low0)
        ticks = (low1 - low0) % (1 << 32)
        wraps = round((((high1 - high0) % (1 << 32)) * self.counter_hz - ticks) / (1 << 32))
        ticks += wraps << 32
        return round(ticks * 1_000_000_000 / (self.counter_hz << self.shift))


def _mps2(name: str, spare: int) -> EmulatedMachine:
    banks = Bank(0, 4 * MIB), Bank(0x2000_0000, 4 * MIB), Bank(spare, 16 * MIB)
    return EmulatedMachine(name, "qemu-system-arm", (), *banks, 0x4002_8000, 25_000_000, 8)


AN385, AN386 = _mps2("mps2-an385", 0x2100_0000), _mps2("mps2-an386", 0x2100_0000)
AN500 = _mps2("mps2-an500", 0x6000_0000)
# These start in the secure state: secure aliases throughout, except for memories that have none.
AN505 = EmulatedMachine(
    "mps2-an505",
    "qemu-system-arm",
    (),
    Bank(0x1000_0000, 4 * MIB),
    Bank(0x3800_0000, 4 * MIB),
    Bank(0x8000_0000, 16 * MIB),
    0x5030_2000,
    20_000_000,
    8,
)
# Two cores, the second of which waits until it is released. Arm left floating point and DSP out of the first one; chips
# with two equal cores have them in both.
AN521 = replace(
    AN505,
    name="mps2-an521",
    options=("-global", "sse-200.CPU0_FPU=on", "-global", "sse-200.CPU0_DSP=on"),
    cores=2,
    system_control=0x5002_1000,
)
AN547 = EmulatedMachine(
    "mps3-an547",
    "qemu-system-arm",
    (),
    Bank(0x1000_0000, 512 * KIB),
    Bank(0x3100_0000, 4 * MIB),
    Bank(0x7000_0000, 256 * MIB),
    0x5930_2000,
    20_000_000,
    8,
)


def _virt(options: str) -> EmulatedMachine:
    return EmulatedMachine(
        "virt",
        "qemu-system-riscv32",
        ("-bios", "none", "-m", "512M", "-cpu", options),
        Bank(0x8000_0000, 64 * MIB),
        Bank(0x8400_0000, 64 * MIB),
        Bank(0x8800_0000, 256 * MIB),
    )


def machine_for(target: Target, lanes: int = 1) -> EmulatedMachine:
    """The machine for the target's code; a Cortex-M0+ is a subset of the Cortex-M3 on the AN385.

    Two lanes of a Cortex-M33 or M0+ have a core each; other lanes share one.
    """
    if target.architecture is Architecture.RV32:
        # Without the features that the target lacks, so that forbidden instructions are detected.
        return _virt("rv32" if target.has_fpu else "rv32,f=off,d=off")
    for core, machine in _OF_CORE.items():
        if target.architecture is Architecture.CORTEX_M and target.cpu.split("+")[0] == core:
            return AN521 if lanes == AN521.cores and core in _TWO_OF_THEM else machine
    raise EdgewrightError(f"no emulated machine runs {target.name}; there is one for {', '.join(_OF_CORE)} and RV32")


_OF_CORE = {
    "cortex-m0plus": AN385,
    "cortex-m3": AN385,
    "cortex-m4": AN386,
    "cortex-m7": AN500,
    "cortex-m33": AN505,
    "cortex-m55": AN547,
}
_TWO_OF_THEM = ("cortex-m0plus", "cortex-m33")  # cores that the AN521 runs
