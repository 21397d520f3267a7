"""The header of an emitted library: what its user reads and calls."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from ..network import Network, Tensor
from ..network.interface import conversion
from ..program import Plan
from .constants import C_TYPES, number
from .options import Options
from .source import Source, comment, identifier

VERSION = 1  # of the interface that the header declares


@dataclass(frozen=True)
class Parameters:
    """The C parameter of each input and output, all different."""

    inputs: Mapping[str, str]
    outputs: Mapping[str, str]


def parameters(network: Network, taken: Collection[str]) -> Parameters:
    used = {*taken, *_RESERVED, *_LOCALS}
    return Parameters(_named(network.inputs, used), _named(dict.fromkeys(network.outputs), used))


def _named(names: Collection[str], used: set[str]) -> dict[str, str]:
    found = {}
    for name in names:
        base = text = identifier(name).lower()
        count = 1
        while text in used:
            count += 1
            text = f"{base}_{count}"
        used.add(text)
        found[name] = text
    return found


def arena_macro(prefix: str, memory: str, plan: Plan) -> str:
    """The macro that holds an arena's size: NAME_ARENA_SIZE, or one for each of several memories."""
    if len(plan.arenas) == 1:
        return f"{prefix.upper()}_ARENA_SIZE"
    return f"{prefix.upper()}_ARENA_{identifier(memory).upper()}_SIZE"


def header(prefix: str, plan: Plan, network: Network, names: Parameters, options: Options) -> str:
    c = Source()
    guard = prefix.upper()
    c.lines += [
        f"/* {prefix}: {comment(network.name)}, compiled by edgewright.",
        " *",
        f" * {plan.macs} multiply-accumulates, {plan.peak_bytes} bytes of RAM"
        + (" (no plan of these layers needs less)," if plan.optimal else ",")
        + f" arithmetic of {network.arithmetic.value}, rounding {options.rounding.value}.",
        " * No allocation, no recursion; not reentrant unless each caller brings an arena of its own. */",
        f"#ifndef {guard}_H",
        f"#define {guard}_H",
        "",
        "#include <stdint.h>",
        "",
        "#ifdef __cplusplus",
        'extern "C" {',
        "#endif",
        "",
        f"#define {guard}_VERSION {VERSION}",
        f'#define {guard}_NAME "{_text(network.name)}"',
        f"#define {guard}_MACS {plan.macs}ULL",
        "",
    ]
    for memory, size in plan.arenas.items():
        c.line(f"#define {arena_macro(prefix, memory, plan)} {size}")
    c.line()
    for way, group in (("INPUT", names.inputs), ("OUTPUT", names.outputs)):
        for name, parameter in group.items():
            if name in network.file_tensors:
                c.line(f"/* {comment(name)}: {comment(conversion(network, name))} */")
            _describe(c, f"{guard}_{way}_{parameter.upper()}", network.tensors[name])
    c.lines += [
        f"/* To place the arena, define {guard}_SECTION(memory) when compiling the library, for example as",
        ' * __attribute__((section(".sram2"))).',
        f" * To bring it yourself, define {guard}_CALLER_PLACES_ARENA and call {prefix}_run_in. */",
        f"#ifndef {guard}_SECTION",
        f"#define {guard}_SECTION(memory)",
        "#endif",
        "",
    ]
    arenas = [f"uint8_t *{identifier(memory).lower()}" for memory in plan.arenas]
    tensors = declared(prefix, plan, network, names)
    for name, parameter in names.inputs.items():
        if plan.views[name].window:
            ctype, row = C_TYPES[network.tensors[name].dtype.value], network.tensors[name].strides[1]
            c.lines += [
                f"/* Writes row `row` of {comment(name)} ({row} bytes) to `target`.",
                " * Rows are asked for in order, once each. */",
                f"typedef void (*{prefix}_pull_{parameter})(void *context, int32_t row, {ctype} *target);",
                "",
            ]
    c.lines += [
        "/* Runs the network. An input that is NULL is taken from its place in the arena, where the functions",
        " * below point to; an output that is NULL is left there. */",
        f"void {prefix}_run({', '.join(tensors)});",
        "",
        "/* The same in arenas that the caller brings: 16-byte aligned, of the sizes above. */",
        f"void {prefix}_run_in({', '.join([*arenas, *tensors])});",
        "",
        "/* Where inputs and outputs lie in the library's own arena. */",
    ]
    for way, group in (("input", names.inputs), ("output", names.outputs)):
        for name, parameter in group.items():
            if name in network.constants or not _lies_densely(plan, network.tensors[name]):
                continue
            ctype = C_TYPES[network.tensors[name].dtype.value]
            c.line(f"{ctype} *{prefix}_{way}_{parameter}(void);")
    c.lines += ["", "#ifdef __cplusplus", "}", "#endif", "", f"#endif /* {guard}_H */"]
    return c.text()


def declared(prefix: str, plan: Plan, network: Network, names: Parameters) -> list[str]:
    """The parameters of the run function: inputs (a pulled one as a function and its context), then outputs."""
    parts = []
    for name, parameter in names.inputs.items():
        if plan.views[name].window:
            parts += [f"{prefix}_pull_{parameter} {parameter}", f"void *{parameter}_context"]
        else:
            parts.append(f"const {C_TYPES[network.tensors[name].dtype.value]} *{parameter}")
    return parts + [f"{C_TYPES[network.tensors[n].dtype.value]} *{p}" for n, p in names.outputs.items()]


def _describe(c: Source, macro: str, tensor: Tensor) -> None:
    c.line(f"/* {comment(tensor.name)}: {tensor.dtype.value}[{'x'.join(map(str, tensor.shape))}] */")
    c.line(f'#define {macro}_NAME "{_text(tensor.name)}"')
    c.line(f"#define {macro}_SIZE {tensor.size}")
    c.line(f"#define {macro}_RANK {len(tensor.shape)}")
    c.line(f"#define {macro}_SHAPE {{{', '.join(map(str, tensor.shape)) or '1'}}}")
    if tensor.quant is not None and not tensor.quant.is_per_channel:
        c.line(f"#define {macro}_SCALE {number(tensor.quant.scale[0])}")
        c.line(f"#define {macro}_ZERO ({tensor.quant.zero[0]})")
    c.line()


def _lies_densely(plan: Plan, tensor: Tensor) -> bool:
    view = plan.views[tensor.name]
    strides = zip(tensor.shape, view.strides, tensor.strides, strict=True)
    return view.window is None and all(size == 1 or a == b for size, a, b in strides)


def _text(name: str) -> str:
    return "".join(ch if ch.isprintable() and ch.isascii() and ch not in '"\\?' else "_" for ch in name)


_RESERVED = frozenset(
    """
    auto break case char const continue default do double else enum extern float for goto if inline int long register
    restrict return short signed sizeof static struct switch typedef union unsigned void volatile while class new
    delete this template typename namespace operator private public protected virtual friend using try catch throw
    bool true false export asm and or not xor
    """.split()  # noqa: SIM905
)

# Variables of the run function: a parameter of the same name would be shadowed.
_LOCALS = frozenset(
    [f"{word}{axis}" for word in ("a", "b", "d", "i", "j", "k", "kx", "ky", "depth", "part") for axis in range(10)]
    + "px py pw pa pb pc tap weight sum top left channel best total count at v k most whole norm up side found".split()  # noqa: SIM905
)
