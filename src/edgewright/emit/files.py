"""The files of a library that hold no decisions: C as it is kept here, and weights."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from functools import cache
from importlib import resources
from pathlib import Path

import numpy as np

from ..kernels.printing.constants import LARGE, Constants, FlashArray, c_type, initialiser, pitch_of
from ..kernels.printing.source import comment, header_foot, header_head

ALWAYS = ("base",)  # kernel files that every library has
SETTINGS = ("split", "views")  # those on which types in others depend


def renamed(text: str, prefix: str) -> str:
    """The C text with the library's prefix in place of `ew_`, so that one firmware can have several libraries."""
    return re.sub(r"\bew_", f"{prefix}_", re.sub(r"\bEW_", f"{prefix.upper()}_", text))


def own_source(name: str, prefix: str) -> str:
    """A C file of this room, for one library."""
    return renamed((resources.files(__package__) / "c" / f"{name}.c").read_text(), prefix)


def kernel_files(prefix: str, names: Iterable[str]) -> dict[str, str]:
    """NAME_kernels.h and NAME_kernels.c: the kernels that the library calls, with all that these include."""
    order = _closed((*ALWAYS, *sorted(names, key=lambda name: (name not in SETTINGS, name))))
    guard = f"{prefix.upper()}_KERNELS_H"
    head = [
        f"/* {prefix}: the kernels, from edgewright. */",
        f"#ifndef {guard}",
        f"#define {guard}",
        "",
        *(_stripped(kernel_text(f"{name}.h")) for name in order),
        f"#endif /* {guard} */",
        "",
    ]
    body = [f"/* {prefix}: the kernels, from edgewright. */", f'#include "{prefix}_kernels.h"', ""]
    body += [_stripped(kernel_text(f"{name}.c")) for name in order if has_source(name)]
    files = {f"{prefix}_kernels.h": renamed("\n".join(head), prefix)}
    if any(has_source(name) for name in order):
        files[f"{prefix}_kernels.c"] = renamed("\n".join(body) + "\n", prefix)
    return files


def _closed(names: Iterable[str]) -> list[str]:
    """The kernel files with all files that they include, each after its includes."""
    order: list[str] = []

    def visit(name: str) -> None:
        if name in order:
            return
        texts = [kernel_text(f"{name}.h")] + ([kernel_text(f"{name}.c")] if has_source(name) else [])
        for text in texts:
            for other in re.findall(r'^#include "(\w+)\.h"', text, re.M):
                if other != name:
                    visit(other)
        if name not in order:
            order.append(name)

    for name in names:
        visit(name)
    return order


def _stripped(text: str) -> str:
    """The text without its include guard and without the includes of our own files, which are all merged into one."""
    text = re.sub(r'^#include "\w+\.h"\n', "", text, flags=re.M)
    guard = re.search(r"^#ifndef (\w+_H)\n#define \1\n", text, re.M)
    if guard:
        text = text.replace(guard.group(0), "", 1)
        text = re.sub(r"\n#endif[^\n]*\s*\Z", "\n", text)
    return text.strip() + "\n"


@cache
def kernel_text(file: str) -> str:
    """The text of a kernel file; a custom operator's is named by its path, and its header is made of it."""
    path = Path(file)
    if path.is_absolute():
        text = Path(path.with_suffix("")).read_text()
        return _declarations(text) if path.suffix == ".h" else f'#include "base.h"\n{text}'
    return (resources.files("edgewright.kernels") / "c" / file).read_text()


@cache
def has_source(name: str) -> bool:
    return Path(name).is_absolute() or (resources.files("edgewright.kernels") / "c" / f"{name}.c").is_file()


def _declarations(text: str) -> str:
    """Declarations of the functions that a custom operator's C defines: lines that begin with `void ew_...(`."""
    found = re.findall(r"^(void\s+ew_\w+\s*\([^)]*\))\s*\{", text, re.M)
    return "\n".join(['#include "base.h"', *(f"{declaration};" for declaration in found), ""])


def weight_files(constants: Constants) -> dict[str, str | bytes]:
    """NAME_weights.h, and the values: C text, or a binary file that the assembler includes when they are many."""
    prefix = constants.prefix
    guard = f"{prefix.upper()}_WEIGHTS_H"
    head = [f"/* {prefix}: weights and tables, {constants.bytes} bytes of flash. */", *header_head(guard)]
    views = constants.views
    for name, constant in constants.by_name.items():
        if name not in views:
            head.append(f"extern const {_declared(constant, name)}; /* {comment(constant.note)} */")
        else:
            head.append(f"#define {name} {views[name].whole} /* {comment(constant.note)} */")
        if constant.rows is not None:
            pitch = views[name].pitch if name in views else constant.rows.depth
            head.append(f"#define {pitch_of(name)} {pitch}")
    head += [*header_foot(guard), ""]
    files: dict[str, str | bytes] = {f"{prefix}_weights.h": "\n".join(head)}
    if not constants.by_name:
        return files
    if constants.bytes > LARGE:
        two = constants.of_two_versions
        return files | _binary_weights(constants) | ({f"{prefix}_starts.c": _c_weights(constants, two)} if two else {})
    return files | {f"{prefix}_weights.c": _c_weights(constants, constants.names)}


def _declared(constant: FlashArray, name: str) -> str:
    return f"{c_type(constant.values)} {name}[{constant.values.size}]"


def _c_weights(constants: Constants, names: Collection[str]) -> str:
    """C of these arrays."""
    prefix = constants.prefix
    arrays = [constants.by_name[name].values for name in names]
    body = [
        f"/* {prefix}: weights and tables. */",
        f'#include "{prefix}_weights.h"',
        f'#include "{prefix}_kernels.h"' if constants.of_two_versions else "",
        "#include <math.h>" if any(v.dtype.kind == "f" and not np.isfinite(v).all() for v in arrays) else "",
        "#if defined(__clang__)",
        "#define ALIGNED(n) __attribute__((aligned(n)))",
        "#elif defined(__GNUC__) /* gcc turns the order round, and with it the gaps between them */",
        "#define ALIGNED(n) __attribute__((aligned(n), no_reorder))",
        "#else",
        "#define ALIGNED(n)",
        "#endif",
        "",
    ]
    for name in names:
        constant = constants.by_name[name]
        body.append(f"ALIGNED({constant.alignment}) const {_declared(constant, name)} = {{")
        body += [initialiser(constant.values, constant.unsigned, f"{prefix.upper()}_START"), "};", ""]
    return "\n".join(body)


def _binary_weights(constants: Constants) -> dict[str, str | bytes]:
    """NAME_weights.bin and an assembler file that includes it: C text would take the compiler minutes."""
    prefix = constants.prefix
    text = [
        f"/* {prefix}: weights and tables, from {prefix}_weights.bin beside this file. */",
        "#if defined(__APPLE__)",
        "    .section __TEXT,__const",
        "#define SYMBOL(name) _##name",
        "#else",
        '    .section .rodata, "a"',
        "#define SYMBOL(name) name",
        "#endif",
    ]
    blob = bytearray()
    for name, constant in constants.by_name.items():
        if constant.unsigned is not None or name in constants.views:
            continue
        values, alignment = constant.values, constant.alignment
        blob += bytes(-len(blob) % alignment)
        text += [
            f"    .balign {alignment}",
            f"    .globl SYMBOL({name})",
            f"SYMBOL({name}):",
            f'    .incbin "{prefix}_weights.bin", {len(blob)}, {values.nbytes}',
        ]
        blob += values.tobytes()
    text += ["#if defined(__ELF__)", '    .section .note.GNU-stack, "", %progbits', "#endif", ""]
    return {f"{prefix}_weights.S": "\n".join(text), f"{prefix}_weights.bin": bytes(blob)}
