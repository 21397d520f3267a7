"""What a driver's source means, without any of the tool: the source itself, compiled for this machine as C++.

A field becomes an object whose conversion is a read and whose assignment is a write; both ask Python. So no access is
missed, moved or merged, and nothing of the analysis, the layout or the generated code takes part.
"""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.hal.random_code import UNKNOWN
from tests.hal.random_drivers import Program
from tests.hal.random_text import Made
from tests.hal.random_values import ARM
from tests.helpers.tools import command

SHIM = """
#ifndef EDGEWRIGHT_HAL_H
#define EDGEWRIGHT_HAL_H
#include <stdint.h>
extern "C" {
uint64_t (*host_read)(const void *);
void (*host_write)(const void *, uint64_t);
uint32_t (*host_call)(uint32_t, uint32_t);
}
template <int Bytes> struct Holder { typedef uint64_t type; };
template <> struct Holder<1> { typedef uint8_t type; };
template <> struct Holder<2> { typedef uint16_t type; };
template <> struct Holder<3> { typedef uint32_t type; };
template <> struct Holder<4> { typedef uint32_t type; };
template <int Bits> struct Field {
    typedef typename Holder<(Bits + 7) / 8>::type T;
    unsigned char byte;
    Field() = default;
    Field(const Field &) = delete;
    operator T() const { return (T)host_read(this); }
    T operator=(T value)
    {
        value = (T)(value & (~(uint64_t)0 >> (64 - Bits)));
        host_write(this, value);
        return value;
    }
    T operator=(const Field &other) { return *this = (T)other; }
#define UPDATE(op) template <class V> T operator op##=(const V &value) { return *this = (T)((T)*this op value); }
    UPDATE(+) UPDATE(-) UPDATE(*) UPDATE(&) UPDATE(|) UPDATE(^) UPDATE(<<) UPDATE(>>)
    T operator++() { return *this = (T)((T)*this + 1u); }
    T operator--() { return *this = (T)((T)*this - 1u); }
    T operator++(int) { T old = *this; *this = (T)(old + 1u); return old; }
    T operator--(int) { T old = *this; *this = (T)(old - 1u); return old; }
};
#define bfGroup struct
#define make_device(type, name, address) \\
    static struct type name##_memory; static struct type *const name = &name##_memory; \\
    void *name##_base(void) { return &name##_memory; } static_assert(true, "")
#define bus(name, width, narrowest) static_assert(true, "")
#define unordered(name) static_assert(true, "")
#define snapshot
#define together(...)
#define ro
#define wo
#define w1c
#define w1s
#define clear_on_read
#define fifo
#define hw
#define shared_with_isr
#define split
#define rse(...)
#define wse(...)
#define reset_value(value)
#define pin(byte, bit)
typedef Field<1> bit;
"""
NUMBERS = {
    "void": None,
    "int": ctypes.c_int32,
    "uint8_t": ctypes.c_uint8,
    "uint16_t": ctypes.c_uint16,
    "uint32_t": ctypes.c_uint32,
    "uint64_t": ctypes.c_uint64,
}
READ = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_void_p)
WRITE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint64)
CALL = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_uint32, ctypes.c_uint32)


def shim() -> str:
    """A stand-in for the support header, in C++."""
    return SHIM + "".join(f"typedef Field<{bits}> uint{bits};\n" for bits in range(1, 65)) + "#endif\n"


def wrapper() -> str:
    """The driver with the functions that it does not define."""
    calls = "".join(
        f"uint32_t {name}(uint32_t value) {{ return host_call({number}u, value); }}\n"
        for number, name in enumerate(UNKNOWN)
    )
    return f'#include "edgewright_hal.h"\nextern "C" {{\n#include "driver.c"\n{calls}}}\n'


@dataclass(slots=True)
class Hooks:
    """What the world around a driver answers: fields by device and name, unknown functions by name."""

    read: Callable[[str, str], int]
    write: Callable[[str, str, int], None]
    call: Callable[[str, int], int]


@dataclass(slots=True)
class Host:
    """A program that runs on this machine; every access goes through `hooks`."""

    program: Program
    library: Any
    hooks: Hooks
    at: dict[int, tuple[str, str]]  # address of every field
    addresses: dict[tuple[str, str], int]
    kept: list[Any] = field(default_factory=list)  # ctypes needs its callbacks alive
    raised: list[BaseException] = field(default_factory=list)

    def call(self, made: Made, pointers: Mapping[str, tuple[str, str]], numbers: Mapping[str, int], buffer: Any) -> int:
        """The result of one call; a pointer is given as a device and the first field behind it."""
        function = self.library[made.name]
        function.argtypes = [ctypes.c_void_p] * len(made.pointers) + [NUMBERS[kind] for kind, _ in made.numbers]
        function.argtypes += [ctypes.c_void_p] * made.buffer
        function.restype = NUMBERS[made.result]
        words = [self.addresses[pointers[name]] for name, _, _ in made.pointers]
        words += [numbers[name] for _, name in made.numbers] + [buffer] * made.buffer
        result = function(*words)
        if self.raised:
            raise self.raised[0]
        return (result or 0) & 0xFFFFFFFFFFFFFFFF


def on_host(program: Program, folder: Path, hooks: Hooks) -> Host:
    """The program compiled and bound to its hooks."""
    (folder / "edgewright_hal.h").write_text(shim())
    (folder / "driver.c").write_text(
        str(program).replace(ARM, "+")
    )  # C++ would make the second operand the first's type
    (folder / "driver.cpp").write_text(wrapper())
    flags = ["-std=c++17", "-w", "-O0", "-shared", "-fPIC", "-o", "driver.so", "driver.cpp"]
    subprocess.run([*command("g++"), *flags], cwd=folder, check=True)
    library = ctypes.CDLL(str(folder / "driver.so"))
    at = dict(_addresses(program, library))
    host = Host(program, library, hooks, at, {where: address for address, where in at.items()})
    _bind(host)
    return host


def _addresses(program: Program, library: Any) -> list[tuple[int, tuple[str, str]]]:
    """Every field is one byte, so its address is its number in the device."""
    found = []
    for device in program.world.devices:
        base = library[f"{device.name}_base"]
        base.restype = ctypes.c_void_p
        start = base()
        elements = program.world.elements(device.group)
        found += [(start + number, (device.name, name)) for number, (name, _) in enumerate(elements)]
    return found


def _bind(host: Host) -> None:
    """Points the driver's hooks here; an exception is kept and raised after the call."""

    def guarded(action: Callable[..., Any]) -> Callable[..., Any]:
        def run(*words: Any) -> Any:
            try:
                return action(*words)
            except Exception as error:  # it cannot pass through C
                host.raised.append(error)
                return 0

        return run

    hooks = {
        "host_read": READ(guarded(lambda address: host.hooks.read(*host.at[address]))),
        "host_write": WRITE(guarded(lambda address, value: host.hooks.write(*host.at[address], value))),
        "host_call": CALL(guarded(lambda number, value: host.hooks.call(UNKNOWN[number], value))),
    }
    for name, hook in hooks.items():
        ctypes.c_void_p.in_dll(host.library, name).value = ctypes.cast(hook, ctypes.c_void_p).value
    host.kept = list(hooks.values())
