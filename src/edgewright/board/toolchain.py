"""Compilers for targets, and the flags for the promised code."""

from __future__ import annotations

import os
import platform
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from ..errors import EdgewrightError
from ..platform.target import Architecture, Family, Target

# Contraction would round a product and a sum once instead of twice; arena memory is accessed as several types.
# errno is unused: a square root is one instruction.
FLAGS = (
    "-std=c99",
    "-ffunction-sections",
    "-fdata-sections",
    "-ffp-contract=off",
    "-fno-strict-aliasing",
    "-fno-math-errno",
)
ON_ARM = platform.machine() in ("aarch64", "arm64")
# Code for this machine: on Arm the option that every compiler has is the processor's.
NATIVE = "-mcpu=native" if ON_ARM else "-march=native"
# Clang's lowering of gathers for M-profile vectors steps the counter of a loop around a short one by the stride of the
# gather (LLVM 22 does), and the loop never ends. Gathers gain almost nothing there.
_NO_GATHERS = ("-mllvm", "-enable-arm-maskedgatscat=false")
# Freestanding: no C library. Built-ins stay on, so that a memcpy of four bytes is one load and one store.
BARE = ("-ffreestanding", "-fbuiltin", "-fno-common", "-fno-unwind-tables", "-fno-asynchronous-unwind-tables")

_CANDIDATES = {
    Architecture.HOST: ("cc", "gcc", "clang"),
    Architecture.CORTEX_M: ("arm-none-eabi-gcc",),
    Architecture.RV32: ("riscv32-unknown-elf-gcc", "riscv64-unknown-elf-gcc", "riscv-none-elf-gcc"),
    Architecture.AARCH64: ("aarch64-linux-gnu-gcc", "aarch64-none-linux-gnu-gcc", *(("gcc",) if ON_ARM else ())),
}
_PACKAGES = {
    Architecture.HOST: "gcc",
    Architecture.CORTEX_M: "gcc-arm-none-eabi",
    Architecture.RV32: "gcc-riscv64-unknown-elf",
    Architecture.AARCH64: "gcc-aarch64-linux-gnu",
}
_STATIC_TRIPLE, SHARED_TRIPLE = "aarch64-linux-musl", "aarch64-linux-gnu.2.28"  # glibc of Debian 10
_at_work: set[int] = set()  # process groups


@dataclass(frozen=True, slots=True)
class Toolchain:
    """A compiler for one target: `command` plus sources."""

    name: str  # the compiler and its version, for reports
    program: tuple[str, ...]
    flags: tuple[str, ...]  # for every call
    is_gcc: bool  # rather than clang or Zig, which wraps clang

    @property
    def helpers(self) -> tuple[str, ...]:
        """Flags that link the compiler's helpers (64-bit division, soft floats) and no C library.

        Zig adds its own, unless it reads -nostdlib; it has no C library for bare metal anyway.
        """
        return ("-nostdlib", "-lgcc") if self.is_gcc else ("-nostartfiles",)

    def run(self, arguments: Sequence[str | Path], folder: Path) -> None:
        """Calls the compiler in `folder`; an error contains its output."""
        command = [*self.program, *self.flags, *map(str, arguments)]
        pipe = subprocess.PIPE  # a separate group: drivers start compilers, which end together
        with subprocess.Popen(command, cwd=folder, stdout=pipe, stderr=pipe, text=True, process_group=0) as process:
            _at_work.add(process.pid)
            try:
                _, said = process.communicate()
            except BaseException:
                _end(process.pid)
                raise
            finally:
                _at_work.discard(process.pid)
        if process.returncode:
            raise EdgewrightError(f"{self.name} fails ({' '.join(map(str, arguments))[:200]}):\n{said[-4000:]}")


def end_compilers() -> None:
    """Ends running compilers, which an interrupt does not reach."""
    for group in tuple(_at_work):
        _end(group)


def _end(group: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def toolchain(target: Target, zig: bool | None = None) -> Toolchain:
    """The compiler for the target: its usual GCC, else Zig from PyPI; `zig` selects one of them."""
    if not zig:
        for name in _CANDIDATES[target.architecture]:
            path = shutil.which(name)
            if path:
                flags = gcc_flags(target)
                return Toolchain(f"{name} {_output(path, '-dumpfullversion')}", (path,), flags, not _is_clang(path))
    if zig is not False and find_spec("ziglang"):
        program = (sys.executable, "-m", "ziglang", "cc")
        return Toolchain(
            f"zig cc {_output(sys.executable, '-m', 'ziglang', 'version')}", program, zig_flags(target), False
        )
    raise EdgewrightError(_missing(target, zig))


def shared_toolchain(target: Target) -> Toolchain:
    """The compiler for shared objects: on Linux for Arm they use glibc, as Python there does."""
    shared = toolchain(target)
    flags = tuple(SHARED_TRIPLE if flag == _STATIC_TRIPLE else flag for flag in shared.flags)
    return replace(shared, flags=flags)


def builds_with_zig(target: Target) -> bool:
    """Whether Zig builds code for the target here, because its usual compiler is missing."""
    return bool(find_spec("ziglang")) and not any(map(shutil.which, _CANDIDATES[target.architecture]))


def _missing(target: Target, zig: bool | None) -> str:
    extra = "pip install 'edgewright[board]', which brings the Zig compiler"
    if zig:
        return f"no Zig compiler found; {extra}"
    names = " or ".join(_CANDIDATES[target.architecture])
    debian = f"apt install {_PACKAGES[target.architecture]}"
    tail = "" if zig is False else f" or {extra}"
    return f"no compiler for {target.name} found ({names}); install it (Debian: {debian}){tail}"


def gcc_flags(target: Target) -> tuple[str, ...]:
    match target.architecture:
        case Architecture.CORTEX_M:
            abi = "hard" if target.has_fpu else "soft"
            fpu = (f"-mfpu={target.fpu}",) if target.fpu else ()
            return (f"-mcpu={target.cpu}", "-mthumb", f"-mfloat-abi={abi}", *fpu, *BARE)
        case Architecture.RV32:
            abi = "ilp32d" if target.has_fpu else "ilp32"
            # The older specification has the counters and fences in the base, as every RV32 chip has.
            return (f"-march={target.cpu}", f"-mabi={abi}", "-misa-spec=2.2", "-mcmodel=medany", *BARE)
        case Architecture.AARCH64:
            return (f"-mcpu={target.cpu}",)
        case Architecture.HOST:
            return ()


def clang_flags(target: Target) -> tuple[str, ...]:
    """The flags that only clang needs for the target."""
    return _NO_GATHERS if target.family is Family.HELIUM else ()


def clang_in_make(target: Target) -> str:
    """The lines of a Makefile that set `CLANG` to these flags if `CC` accepts them; empty if there are none."""
    flags = " ".join(clang_flags(target))
    return flags and (
        "# Loops around gathers of clang may never end. Other compilers neither take the option nor need it.\n"
        f"CLANG   := $(shell $(CC) {flags} -E -x c /dev/null >/dev/null 2>&1 && echo '{flags}')\n"
    )


def zig_flags(target: Target) -> tuple[str, ...]:
    """The flags for clang as wrapped by Zig: a triple, and the cpu with its features."""
    # Zig adds -ffreestanding, which disables clang's built-ins: the later -fhosted overrides it.
    bare = (*BARE, "-fhosted", "-fno-sanitize=undefined", "-fno-stack-protector")
    match target.architecture:
        case Architecture.CORTEX_M:
            abi = "eabihf" if target.has_fpu else "eabi"
            return ("-target", f"thumb-freestanding-{abi}", f"-mcpu={_zig_cpu(target)}", *clang_flags(target), *bare)
        case Architecture.RV32:
            float_abi = "ilp32d" if target.has_fpu else "ilp32"
            cpu = "baseline_rv32" if target.has_fpu else "generic_rv32+m+c"
            return ("-target", "riscv32-freestanding-none", f"-mcpu={cpu}", f"-mabi={float_abi}", *bare)
        case Architecture.AARCH64:
            return ("-target", _STATIC_TRIPLE, f"-mcpu={_zig_cpu(target)}", "-fno-sanitize=undefined")
        case Architecture.HOST:
            return ("-fno-sanitize=undefined",)


def _zig_cpu(target: Target) -> str:
    """The cpu with every option named: Zig's processors have none of the optional ones."""
    cpu = target.cpu.split("+")[0]
    features = {"fpv4-sp-d16": "+vfp4d16sp", "fpv5-sp-d16": "+fp_armv8d16sp-fp64"}.get(target.fpu, "")
    if cpu in ("cortex-m4", "cortex-m7") and not target.has_fpu:
        features += "+soft_float-vfp2sp"
    if cpu == "cortex-m33" and target.family is Family.DSP:
        features += "+dsp"
    if cpu == "cortex-m55" and target.has_fpu:
        features += "+fp_armv8d16"
    if target.family is Family.HELIUM:
        features += "+mve_fp" if target.has_fpu else "+mve"
    return cpu.replace("-", "_") + features


@cache
def _output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True).stdout.strip()


def _is_clang(path: str) -> bool:
    return "clang" in _output(path, "--version")
