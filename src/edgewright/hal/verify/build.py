"""Drivers compiled and linked for the virtual prototype: without a C library, unknown functions as stubs to watch."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...board.elf import Elf, read_elf
from ...board.toolchain import FLAGS, Toolchain, toolchain
from ...errors import EdgewrightError, InputError
from ...platform.target import TARGETS, Architecture, Target
from ..language.description import Device
from ..language.source import STANDARD

WINDOW = 1 << 22  # bytes from `Built.base`: code, data, buffers, stack
DATA, BUFFERS, STACK = 1 << 20, 2 << 20, WINDOW - 4096  # the last page is where calls return to
_SUPPORT = """
typedef __SIZE_TYPE__ size;
void *memcpy(void *to, const void *from, size n);
void *memmove(void *to, const void *from, size n);
void *memset(void *to, int value, size n);
int memcmp(const void *a, const void *b, size n);
void *memcpy(void *to, const void *from, size n)
{
    for (size i = 0; i < n; i++) ((char *)to)[i] = ((const char *)from)[i];
    return to;
}
void *memmove(void *to, const void *from, size n)
{
    if (to < from) return memcpy(to, from, n);
    while (n--) ((char *)to)[n] = ((const char *)from)[n];
    return to;
}
void *memset(void *to, int value, size n)
{
    for (size i = 0; i < n; i++) ((char *)to)[i] = (char)value;
    return to;
}
int memcmp(const void *a, const void *b, size n)
{
    const unsigned char *x = a, *y = b;
    for (size i = 0; i < n; i++) if (x[i] != y[i]) return x[i] < y[i] ? -1 : 1;
    return 0;
}
"""
# What compilers call for atomics where the processor has none: one core runs, and nothing comes between.
_ATOMICS = """
#define NAMED(type, own, args, name) type own args __asm__(name); type own args
#define FETCH(n, t, what, result) \\
    NAMED(t, own_fetch_##what##_##n, (volatile t *at, t value, int order), "__atomic_fetch_" #what "_" #n) \\
    { t old = *at; *at = (t)(result); return old; }
#define SIZED(n, t) \\
    NAMED(t, own_load_##n, (volatile t *at, int order), "__atomic_load_" #n) { return *at; } \\
    NAMED(void, own_store_##n, (volatile t *at, t value, int order), "__atomic_store_" #n) { *at = value; } \\
    NAMED(t, own_exchange_##n, (volatile t *at, t value, int order), "__atomic_exchange_" #n) \\
    { t old = *at; *at = value; return old; } \\
    NAMED(_Bool, own_compare_##n, (volatile t *at, t *expected, t value, int order, int failed), \\
          "__atomic_compare_exchange_" #n) \\
    { t old = *at; if (old == *expected) { *at = value; return 1; } *expected = old; return 0; } \\
    FETCH(n, t, add, old + value) FETCH(n, t, sub, old - value) FETCH(n, t, and, old & value) \\
    FETCH(n, t, or, old | value) FETCH(n, t, xor, old ^ value) FETCH(n, t, nand, ~(old & value))
SIZED(1, unsigned char)
SIZED(2, unsigned short)
SIZED(4, unsigned)
static void own_move(__SIZE_TYPE__ n, volatile void *to, const volatile void *from)
{
    if (n == 4) *(volatile unsigned *)to = *(const volatile unsigned *)from;
    else if (n == 2) *(volatile unsigned short *)to = *(const volatile unsigned short *)from;
    else while (n--) ((volatile char *)to)[n] = ((const volatile char *)from)[n];
}
NAMED(void, own_load, (__SIZE_TYPE__ n, void *at, void *to, int order), "__atomic_load") { own_move(n, to, at); }
NAMED(void, own_store, (__SIZE_TYPE__ n, void *at, void *from, int order), "__atomic_store") { own_move(n, at, from); }
NAMED(void, own_exchange, (__SIZE_TYPE__ n, void *at, void *from, void *to, int order), "__atomic_exchange")
{ own_move(n, to, at); own_move(n, at, from); }
NAMED(_Bool, own_compare, (__SIZE_TYPE__ n, void *at, char *expected, void *from, int order, int failed),
      "__atomic_compare_exchange")
{
    char old[16] __attribute__((aligned(8)));
    own_move(n, old, at);
    for (__SIZE_TYPE__ i = 0; i < n; i++) if (old[i] != expected[i]) { own_move(n, expected, old); return 0; }
    own_move(n, at, from);
    return 1;
}
"""
_LINK = """
SECTIONS {{
  . = {code:#x};
  .text.stubs : {{ *(.text) }}
  {rooms[0]}
  .text : {{ *(.text.*) }}
  .rodata : {{ *(.rodata .rodata.* .srodata .srodata.*) }}
  . = {data:#x};
  {rooms[1]}
  .data : {{ *(.data .data.* .sdata .sdata.*) }}
  .bss : {{ *(.bss .bss.* .sbss .sbss.* COMMON) }}
  /DISCARD/ : {{ *(.ARM.exidx* .eh_frame* .note*) }}
}}
"""
# What keeps its address in all images, from which byte of the window on; stubs and support come before.
_KINDS = ((0x8000, (".text.", ".rodata.", ".srodata.")), (DATA, (".data.", ".sdata.", ".bss.", ".sbss.")))
_GRAIN = 64  # bytes that rooms are multiples of
# Every function stays a function under its own name: the prototype sees which HAL function makes an access.
_APART = ("-DEDGEWRIGHT_INLINE=", "-fno-inline", "-fno-ipa-cp", "-fno-ipa-sra", "-fno-ipa-icf", "-fno-partial-inlining")
_APART_CLANG = ("-DEDGEWRIGHT_INLINE=", "-fno-inline", "-Dinline=__attribute__((used,noinline))")
HOOKS = ("HAL_ENTER_CRITICAL()=((void)0)", "HAL_EXIT_CRITICAL()=((void)0)")  # where interrupts do not matter
_NAMES = re.compile(r"[A-Za-z]\w*|_[A-Za-z0-9]\w*")
_OWN = ("memcpy", "memmove", "memset", "memcmp")


@dataclass(frozen=True, slots=True)
class Image:
    """A compiled driver: where its parts lie depends on the images that it is compared with."""

    objects: tuple[bytes, ...]
    parts: tuple[Elf, ...]
    target: Target
    stubs: frozenset[str]  # functions that the driver calls and does not define


@dataclass(frozen=True, slots=True)
class Built:
    """A driver as the processor runs it."""

    elf: Elf
    target: Target
    compiler: str
    base: int  # of the window
    stubs: frozenset[str]  # functions that the driver calls and does not define
    code: Mapping[str, int]  # bytes of each of its functions
    constants: int  # bytes of its constants

    @property
    def code_bytes(self) -> int:
        return sum(self.code.values()) + self.constants


def target_named(name: str) -> Target:
    """The target, if the virtual prototype can run its code."""
    runnable = [t.name for t in TARGETS.values() if t.architecture in (Architecture.RV32, Architecture.CORTEX_M)]
    if name not in runnable:
        raise InputError(f"the virtual prototype has no target '{name}'; it has {', '.join(runnable)}")
    return TARGETS[name]


def free_window(devices: Iterable[Device], size: int = 1 << 16) -> int:
    """An address for code and data that no device is near, and that no driver is likely to compute."""
    taken = [device.address for device in devices]
    for base in (*range(0x1A40_0000, 0x2000_0000, WINDOW), *range(0x0800_0000, 0xE000_0000, WINDOW)):
        if all(address + size <= base or base + WINDOW <= address for address in taken):
            return base
    raise InputError("no room for the driver's code between the devices' addresses")


def build(
    files: Mapping[str, str],
    target: Target,
    base: int,
    inline: bool = True,
    includes: Sequence[Path] = (),
    defines: Sequence[str] = (),
) -> Built:
    """The driver's files as one image."""
    return link([compile_image(files, target, inline, includes, defines)], base)[0]


def compile_image(
    files: Mapping[str, str],
    target: Target,
    inline: bool = True,
    includes: Sequence[Path] = (),
    defines: Sequence[str] = (),
    callbacks: Sequence[str] = (),
    level: str = "-Os",
) -> Image:
    """The driver's files, compiled; `inline=False` inlines no function."""
    compiler = toolchain(target)
    flags = [*FLAGS, "-std=gnu11", level, "-w", "-I.", *(f"-I{path.resolve()}" for path in includes)]
    flags += [f"-D{define}" for define in ("EDGEWRIGHT_HAL_PROTOTYPE", *defines)]
    flags += ["-idirafter", str(STANDARD)]  # headers such as string.h, where the compiler came without a library
    if not inline:
        flags += _APART if compiler.is_gcc else _APART_CLANG
    with tempfile.TemporaryDirectory(prefix="edgewright-hal-") as name:
        folder = Path(name)
        objects = [folder / path for path in _compile(compiler, folder, files, flags)]
        parts = tuple(map(read_elf, objects))
        stubs = _undefined(parts) | frozenset(callbacks)
        return Image(tuple(path.read_bytes() for path in objects), parts, target, stubs)


def link(images: Sequence[Image], base: int) -> list[Built]:
    """The images, with each function and variable that all of them have at one address, so that these are equal."""
    rooms = _rooms(images, base)
    stubs = frozenset[str]().union(*(image.stubs for image in images))
    return [_linked(image, stubs, rooms, base) for image in images]


def _rooms(images: Sequence[Image], base: int) -> list[str]:
    """For code and for variables: the part of a linker script that gives each section its place."""
    sizes: list[dict[str, tuple[int, int]]] = []
    for image in images:
        found: dict[str, tuple[int, int]] = {}
        for section in (section for part in image.parts for section in part.sections if section.is_allocated):
            size, alignment = found.get(section.name, (0, _GRAIN))
            alignment = max(alignment, section.alignment)
            found[section.name] = size + -(-section.size // alignment) * alignment, alignment
        sizes.append(found)
    common = sorted(set.intersection(*map(set, sizes))) if len(images) > 1 else []
    return [
        _room_script([name for name in common if name.startswith(kinds)], sizes, base + start)
        for start, kinds in _KINDS
    ]


def _room_script(names: Sequence[str], sizes: Sequence[Mapping[str, tuple[int, int]]], at: int) -> str:
    lines = []
    for name in names:
        size, alignment = (max(found[name][n] for found in sizes) for n in (0, 1))
        at = -(-at // alignment) * alignment
        lines.append(f"{name} {at:#x} : {{ *({name}) }}")
        at += size
    return "\n  ".join(lines)


def _linked(image: Image, stubs: frozenset[str], rooms: Sequence[str], base: int) -> Built:
    compiler = toolchain(image.target)
    is_atomic = any(name.startswith("__atomic_") for part in image.parts for name in part.symbols)
    support = (_SUPPORT if set(_OWN) & stubs else "") + (_ATOMICS if is_atomic else "")
    with tempfile.TemporaryDirectory(prefix="edgewright-hal-") as name:
        folder = Path(name)
        objects = [f"{number}.o" for number in range(len(image.objects))]
        for path, content in zip(objects, image.objects, strict=True):
            (folder / path).write_bytes(content)
        _link(compiler, folder, objects, stubs, support, base, rooms)
        elf = read_elf(folder / "image.elf")
    return _built(elf, image.parts, stubs - set(_OWN), image.target, compiler.name, base)


def _compile(compiler: Toolchain, folder: Path, files: Mapping[str, str], flags: Sequence[str]) -> list[str]:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    sources = sorted(name for name in files if name.endswith(".c"))
    objects = [f"{number}.o" for number in range(len(sources))]
    for source, result in zip(sources, objects, strict=True):
        try:
            compiler.run([*flags, "-c", source, "-o", result], folder)
        except EdgewrightError as error:
            raise InputError(_compile_errors(str(error), compiler.name)) from error
    return objects


_ERROR = re.compile(r"^(?P<place>[^\s:][^:\n]*:\d+:\d+): (?:fatal )?error: (?P<what>.*)$", re.MULTILINE)
_MOST_ERRORS = 5


def _compile_errors(said: str, compiler: str) -> str:
    """What a compiler refuses, by place; its command line helps nobody."""
    found = [f"{one['place']}: {one['what']}" for one in _ERROR.finditer(said)][:_MOST_ERRORS]
    told = found or [line for line in said.splitlines()[1:] if line.strip()][-1:]
    return "\n".join([*told, f"{compiler} does not compile the driver, though it is valid for the analysis"])


def _undefined(parts: Sequence[Elf]) -> frozenset[str]:
    """Names that no part defines: without address and size, and no name of the compiler's own library."""
    defined = {name for part in parts for name, (value, size) in part.symbols.items() if size or value}
    named = {name for part in parts for name in part.symbols if _NAMES.fullmatch(name)}
    return frozenset(name for name in named - defined if not name.startswith("__"))


def _link(
    compiler: Toolchain,
    folder: Path,
    objects: Sequence[str],
    stubs: Iterable[str],
    support: str,
    base: int,
    rooms: Sequence[str],
) -> None:
    text = "".join(f'void {name}(void) {{ __asm__ volatile("nop"); }}\n' for name in sorted(set(stubs) - set(_OWN)))
    (folder / "own_of_prototype.c").write_text(text + support)
    (folder / "prototype.ld").write_text(_LINK.format(code=base, data=base + DATA, rooms=rooms))
    flags = ["-Os", "-w", "-fno-builtin"]
    if compiler.is_gcc:
        flags += ["-fno-tree-loop-distribute-patterns", "-fno-ipa-icf"]
    link = ["-g", "-static", "-Wl,-T,prototype.ld", "-Wl,-e,0", "-Wl,--no-gc-sections", "-o", "image.elf"]
    command = [*flags, "own_of_prototype.c", *objects, *link, *compiler.helpers]
    try:
        compiler.run(command, folder)
    except EdgewrightError as error:
        if "relocation truncated" not in str(error):
            raise
        # A jump was made short, and then moved away from its target within the room of its function.
        compiler.run([*command, "-Wl,--no-relax"], folder)


def _built(elf: Elf, parts: Sequence[Elf], stubs: frozenset[str], target: Target, compiler: str, base: int) -> Built:
    own = {name for part in parts for _, _, name in part.functions}
    code: dict[str, int] = {}
    for _, size, name in elf.functions:
        if name in own:
            code[name] = code.get(name, 0) + size
    constants = sum(s.size for p in parts for s in p.sections if s.is_allocated and ".rodata" in s.name[:9])
    return Built(elf, target, compiler, base, stubs, code, constants)
