"""A generated driver compiled for this machine: its accesses to registers go to a bus, as those on the prototype do.

GCC's `-fsanitize=thread` calls a hook in front of each access to memory. A hook learns the value of a write when the
next one is called, or the function ends.
"""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from edgewright.hal.verify.abi import Type
from edgewright.hal.verify.machine import PAGE, Registers
from edgewright.hal.verify.verification import Fault, StopReason

T = TypeVar("T")
MOST_ACCESSES = 1_000_000  # of all calls of a driver, before it is taken not to end
MOST_SECONDS = 60.0

_RUNTIME = r"""
#include <stdint.h>
#include <string.h>
uint32_t (*host_access)(uint32_t is_write, uint32_t address, uint32_t bits, uint64_t value);
uint32_t (*host_entered)(uint32_t number, const uint32_t *words);
uint8_t host_buffer[4096];
static uint32_t stored, stored_bytes; /* the write that comes next */
static int is_register(uintptr_t at) { return at >= FIRST && at < END; }
void host_settle(void)
{
    uint64_t value = 0;
    const uint32_t bytes = stored_bytes;
    stored_bytes = 0;
    memcpy(&value, (const void *)(uintptr_t)stored, bytes);
    if (bytes) host_access(1, stored, 8 * bytes, value);
}
uint32_t host_enter(uint32_t number, const uint32_t *words) { host_settle(); return host_entered(number, words); }
static void seen(uintptr_t at, uint32_t bytes, int is_write)
{
    host_settle();
    if (!is_register(at)) return;
    if (is_write) { stored = (uint32_t)at; stored_bytes = bytes; return; }
    const uint64_t value = host_access(0, (uint32_t)at, 8 * bytes, 0);
    memcpy((void *)at, &value, bytes);
}
#define SEEN(n) \
    void __tsan_read##n(void *a) { seen((uintptr_t)a, n, 0); } \
    void __tsan_write##n(void *a) { seen((uintptr_t)a, n, 1); } \
    void __tsan_unaligned_read##n(void *a) { seen((uintptr_t)a, n, 0); } \
    void __tsan_unaligned_write##n(void *a) { seen((uintptr_t)a, n, 1); }
SEEN(1) SEEN(2) SEEN(4) SEEN(8)
void __tsan_read16(void *a) { (void)a; }
void __tsan_write16(void *a) { (void)a; }
void __tsan_unaligned_read16(void *a) { (void)a; }
void __tsan_unaligned_write16(void *a) { (void)a; }
void __tsan_read_range(void *a, unsigned long n) { seen((uintptr_t)a, (uint32_t)n, 0); }
void __tsan_write_range(void *a, unsigned long n) { seen((uintptr_t)a, (uint32_t)n, 1); }
void __tsan_init(void) {}
void __tsan_func_entry(void *p) { (void)p; }
void __tsan_func_exit(void) {}
void __tsan_atomic32_store(volatile uint32_t *a, uint32_t v, int order) { (void)order; *a = v; }
"""
_HEADER = "#include <stdint.h>\nuint32_t host_enter(uint32_t, const uint32_t *);\n"
ACCESS = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_uint64)
ENTERED = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_uint32, ctypes.POINTER(ctypes.c_uint32))


class HostMachine:
    """What a Board asks of a machine. Use it `apart`: it takes the addresses of the registers, and may crash."""

    def __init__(
        self,
        files: Mapping[str, str],
        pages: frozenset[int],
        watched: Mapping[str, Callable[[], None]],
        unknown: Sequence[str],
        optimisation: str = "-O0",
    ) -> None:
        self.bus: Registers | None = None
        self._watched = list(watched.values())
        self._words: Any = None
        self._answer = 0
        self._count = 0
        self._fault: BaseException | None = None
        first, end = min(pages), max(pages) + PAGE
        self._library = _compiled(files, list(watched), unknown, [optimisation, f"-DFIRST={first}", f"-DEND={end}"])
        self.buffer = ctypes.addressof(ctypes.c_uint8.in_dll(self._library, "host_buffer"))
        map_zeros(first, end - first)
        self._kept = {"host_access": ACCESS(self._access), "host_entered": ENTERED(self._entered)}
        for name, function in self._kept.items():
            ctypes.c_void_p.in_dll(self._library, name).value = ctypes.cast(function, ctypes.c_void_p).value

    def call(self, name: str, types: Sequence[Type], values: Sequence[int]) -> int:
        """What the function leaves in its result register."""
        function = self._library[name]
        function.restype = ctypes.c_uint64
        function.argtypes = [ctypes.c_uint64] * len(values)  # a narrower parameter is the low part of its register
        result = function(*values)
        self._library.host_settle()
        if self._fault:
            raise self._fault
        return int(result)

    def argument(self, place: int) -> int:
        return int(self._words[place])

    def answer(self, value: int) -> None:
        self._answer = value

    def load(self, address: int, size: int) -> bytes:
        return ctypes.string_at(address, size)

    def store(self, address: int, data: bytes) -> None:
        ctypes.memmove(address, data, len(data))

    def _access(self, is_write: int, address: int, bits: int, value: int) -> int:
        bus = self.bus
        assert bus is not None
        if is_write:
            return self._guarded(lambda: bus.write(address, bits, value))
        return self._guarded(lambda: bus.read(address, bits))

    def _entered(self, number: int, words: Any) -> int:
        self._words, self._answer = words, 0
        self._guarded(self._watched[number])
        return self._answer

    def _guarded(self, act: Callable[[], int | None]) -> int:
        """An exception cannot pass through C: the first is kept until the call ends."""
        self._count += 1
        if self._count > MOST_ACCESSES:
            os._exit(1)  # of the process that runs the driver
        if self._fault is None:
            try:
                return act() or 0
            except Exception as error:
                self._fault = error
        return 0


def _compiled(files: Mapping[str, str], watched: Sequence[str], unknown: Sequence[str], flags: Sequence[str]) -> Any:
    """The generated files as a library; a watched function tells that it was entered."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        for file, text in files.items():
            (folder / file).write_text(_telling(text, watched))
        stub = "uint32_t {}(uint32_t value) {{ return host_enter({}u, &value); }}\n"
        (folder / "runtime.c").write_text(_RUNTIME + "".join(stub.format(one, watched.index(one)) for one in unknown))
        (folder / "host_machine.h").write_text(_HEADER)
        common = ["gcc", "-std=gnu11", "-w", "-fPIC", *flags, "-DHAL_ENTER_CRITICAL()=", "-DHAL_EXIT_CRITICAL()="]
        sources = [file for file in files if file.endswith(".c")]
        for file in sources:
            hooked = [*common, "-I.", "-include", "host_machine.h", "-fsanitize=thread", "-c", file]
            subprocess.run(hooked, cwd=folder, check=True)
        objects = [file.removesuffix(".c") + ".o" for file in sources]
        subprocess.run([*common, "-shared", "-o", "driver.so", *objects, "runtime.c"], cwd=folder, check=True)
        return ctypes.CDLL(str(folder / "driver.so"))


def _telling(text: str, watched: Sequence[str]) -> str:
    """The text, with a call of the runtime at the start of each watched function that it defines."""
    numbers = {name: number for number, name in enumerate(watched)}

    def opened(found: re.Match[str]) -> str:
        name, parameters = found.groups()
        if name not in numbers:
            return found.group()
        words = ", ".join(f"(uint32_t)(uintptr_t){one.split()[-1].lstrip('*')}" for one in parameters.split(","))
        return f"{found.group()}\n    host_enter({numbers[name]}u, (const uint32_t[]){{{words}}});"

    return re.sub(r"\b(\w+)\(([^()]*)\)\n\{", opened, text)


def map_zeros(address: int, size: int) -> None:
    """Memory at an address where none is: taking what is in use would break the process in places that say nothing."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    read_write, private_anonymous, only_if_free = 3, 0x22, 0x100000
    found = libc.mmap(address, size, read_write, private_anonymous | only_if_free, -1, 0)
    assert found == address, f"no memory at {address:#x} for registers"


def apart(work: Callable[[], T]) -> T:
    """What `work` returns, from a process of its own; a Fault where that does not end or crashes."""
    context = get_context("fork")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_send, args=(work, there))
    process.start()
    there.close()
    try:
        is_known, found = here.recv() if here.poll(MOST_SECONDS) else (False, "does not end")
    except EOFError:
        is_known, found = False, "crashes, or does not end"
    finally:
        process.kill()
        process.join()
    if not is_known:
        raise Fault(StopReason.WRONG, f"the generated code: {found}")
    return found  # type: ignore[no-any-return]


def _send(work: Callable[[], T], there: Connection) -> None:
    try:
        there.send((True, work()))
    except Exception as error:
        there.send((False, str(error) or type(error).__name__))
