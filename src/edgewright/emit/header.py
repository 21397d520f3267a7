"""The header of an emitted library: what its user reads and calls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ..kernels.printing.constants import C_TYPES, number
from ..kernels.printing.source import CWriter, comment, header_foot, header_head
from ..network import Network, Tensor
from ..network.interface import conversion
from ..platform.target import Target
from ..program import Plan
from ..program.options import Options
from .lanes import declarations
from .names import Parameters

VERSION = 1  # of the interface that the header declares
STOPPED = 3  # what a run returns that a probe has ended
_KINDS = ("NAME", "SIZE", "RANK", "SHAPE", "SCALE", "ZERO", "OFFSET")  # of macros about an input or output
PAUSED = "ew_paused"  # words in which a run that stops where there is no room for a row remembers where it is


def arena_macro(prefix: str, memory: str, names: Parameters) -> str:
    """The macro that holds an arena's size: NAME_ARENA_SIZE, or one for each of several memories."""
    if len(names.arenas) == 1:
        return f"{prefix.upper()}_ARENA_SIZE"
    return f"{prefix.upper()}_ARENA_{names.arenas[memory].upper()}_SIZE"


def header(
    prefix: str,
    plan: Plan,
    network: Network,
    names: Parameters,
    options: Options,
    target: Target,
    has_arena: bool,
    returns: str,
) -> str:
    """The header; `returns` is the type of the run functions."""
    c = CWriter()
    guard = prefix.upper()
    c.lines += [
        f"/* {prefix}: {comment(network.name)}, compiled by edgewright.",
        " *",
        *(f" * {line}" for line in _figures(plan, network, options)),
        " * No allocation, no recursion; not reentrant unless each caller brings an arena of its own.",
        *_example(prefix, plan, network, names),
        " */",
        *header_head(
            f"{guard}_H",
            defined=[] if has_arena else [f"#define {guard}_CALLER_PLACES_ARENA /* the application does */"],
        ),
        f"#define {guard}_VERSION {VERSION}",
        f'#define {guard}_NAME "{_text(network.name)}"',
        f"#define {guard}_MACS {plan.macs}ULL",
        *([f"#define {guard}_LANE_COUNT {plan.lanes}"] if plan.lanes > 1 else []),
        "",
    ]
    for memory, size in plan.arenas.items():
        c.line(f"#define {arena_macro(prefix, memory, names)} {size}")
    c.line()
    for way, group in _ways(names):
        for name, parameter in group.items():
            if name in network.file_tensors:
                c.line(f"/* {comment(name)}: {comment(conversion(network, name))} */")
            _describe(c, f"{guard}_{way}_{parameter.upper()}", network.tensors[name])
            if lies_densely(plan, network, name):
                _locate(c, f"{guard}_{way}_{parameter.upper()}", plan, names, name)
            c.line()
    placing = [
        "",
        f"/* To place the arena, define {guard}_SECTION(memory) when compiling the library, for example as",
        ' * __attribute__((section(".sram2"))).',
        f" * To bring it yourself, define {guard}_CALLER_PLACES_ARENA for the library and for all that include this",
        f" * file, and call {prefix}_run_in: then there is no arena in the library. */",
        f"#ifndef {guard}_SECTION",
        f"#define {guard}_SECTION(memory)",
        "#endif",
    ]
    arenas = [f"uint8_t *{arena}" for arena in names.arenas.values()]
    tensors = declared(prefix, plan, network, names)
    for name, parameter in names.inputs.items():
        if name in plan.pulled:
            ctype, row = C_TYPES[network.tensors[name].dtype.value], network.tensors[name].strides[1]
            c.lines += [
                f"/* Writes row `row` of {comment(name)} ({row} bytes) to `target`.",
                " * Rows are asked for in order, once each. */",
                f"typedef void (*{prefix}_pull_{parameter})(void *context, int32_t row, {ctype} *target);",
                "",
            ]
    if plan.lanes > 1:
        c.lines += declarations(prefix, target, returns, [*arenas, *tensors])
    c.lines += [
        *_run_comment(guard, plan, network, names),
        f"{returns} {prefix}_run_in({', '.join([*arenas, *tensors])});",
        "",
        f"#ifndef {guard}_CALLER_PLACES_ARENA",
        "/* The same in the library's own arena. */",
        f"{returns} {prefix}_run({', '.join(tensors)});",
    ]
    functions = [
        f"{C_TYPES[network.tensors[name].dtype.value]} *{prefix}_{way}_{parameter}(void);"
        for way, group in (("input", names.inputs), ("output", names.outputs))
        for name, parameter in group.items()
        if lies_densely(plan, network, name)
    ]
    if functions:
        c.lines += ["", "/* Where inputs and outputs lie in it. */", *functions]
    c.line("#endif")
    stored = [
        f"const {C_TYPES[network.tensors[name].dtype.value]} *{prefix}_output_{parameter}(void);"
        for name, parameter in names.outputs.items()
        if name in network.constants
    ]
    if stored:
        c.lines += ["", "/* Outputs that are the same for every input, in flash. */", *stored]
    c.lines += [*placing, *_by_index(prefix, c.lines, plan, network, names), *header_foot(f"{guard}_H")]
    return c.text()


def _figures(plan: Plan, network: Network, options: Options) -> Iterator[str]:
    """What the code takes, and how far the proof goes that it is the least."""
    proof = f" (proven least{plan.scope})" if plan.optimal else ""
    yield f"{plan.macs} multiply-accumulates, {plan.peak_bytes} bytes of RAM{proof},"
    yield f"arithmetic of {network.arithmetic.value}, rounding {options.rounding.value}."
    size, how = plan.less_ram
    if how:
        yield f"Less RAM: {size} {how}." if size else f"{how[0].upper()}{how[1:]}."


def _example(prefix: str, plan: Plan, network: Network, names: Parameters) -> Iterator[str]:
    """A call of the run function, as a part of a comment; none where an output leaves by rows."""
    if any(map(plan.is_by_rows, network.outputs)):
        return
    yield from (" *", " * Example:", " *")
    given = []
    for way, group in _ways(names):
        for index, (name, parameter) in enumerate(group.items()):
            tensor = network.tensors[name]
            ctype, shape = C_TYPES[tensor.dtype.value], "x".join(map(str, tensor.shape))
            if name in plan.pulled:
                rows = f"pull_{parameter}(void *context, int32_t row, {ctype} *target)"
                yield f" *     static void {rows};  // a row of {shape}"
                given += [f"pull_{parameter}", "0"]
            else:
                yield f" *     static {ctype} {parameter}[{prefix.upper()}_{way}_{index}_SIZE];  // {shape}"
                given.append(parameter)
    yield f" *     {prefix}_run({', '.join(given)});"


def _by_index(prefix: str, lines: Sequence[str], plan: Plan, network: Network, names: Parameters) -> Iterator[str]:
    """The macros and functions of inputs and outputs by their index, which stays when an exporter renames tensors."""
    guard = prefix.upper()
    macros = [line.split()[1] for line in lines if line.startswith("#define ")]
    yield from (
        "",
        "/* The same inputs and outputs by index: these names stay when an export names its tensors otherwise. */",
    )
    for way, group in _ways(names):
        yield f"#define {guard}_{way}_COUNT {len(group)}"
        for index, (name, parameter) in enumerate(group.items()):
            start = f"{guard}_{way}_{parameter.upper()}_"
            for kind in _KINDS:
                if start + kind in macros:
                    yield f"#define {guard}_{way}_{index}_{kind} {start}{kind}"
            low = way.lower()
            if lies_densely(plan, network, name) or (way == "OUTPUT" and name in network.constants):
                yield f"#define {prefix}_{low}_{index} {prefix}_{low}_{parameter}"


def return_type(plan: Plan, network: Network) -> str:
    """Of the run functions: a number where rows are asked for, and the call may be refused, or where it may stop."""
    return "int32_t" if any(map(plan.is_by_rows, (*network.inputs, *network.outputs))) else "void"


def _run_comment(guard: str, plan: Plan, network: Network, names: Parameters) -> list[str]:
    """What callers must know: what NULL means for each kind of input and output, and what comes back."""
    pulled = [p for name, p in names.inputs.items() if name in plan.pulled]
    dense = {way: [p for n, p in group.items() if lies_densely(plan, network, n)] for way, group in _ways(names)}
    elsewhere = [p for _, group in _ways(names) for n, p in group.items() if n in plan.outside]
    pushed = [p for name, p in names.outputs.items() if plan.is_by_rows(name)]
    settled = {*pulled, *pushed, *elsewhere, *dense["INPUT"], *dense["OUTPUT"]}
    copied = [p for p in names.inputs.values() if p not in settled]
    lost = [p for p in names.outputs.values() if p not in settled]
    several = "arenas" if len(plan.arenas) > 1 else "an arena"
    lines = [f"Runs the network in {several} that the caller brings: 16-byte aligned, of the size above."]
    if not plan.arenas:
        lines = ["Runs the network; it needs no memory but what is given."]
    if elsewhere:
        lines.append(f"Read and written where the caller has it, 16-byte aligned, never NULL: {', '.join(elsewhere)}.")
    if dense["INPUT"] or dense["OUTPUT"]:
        kinds = " or ".join(way.lower() for way, found in dense.items() if found)
        way = "INPUT" if dense["INPUT"] else "OUTPUT"
        lines += [
            f"An {kinds} that is NULL stays in the arena, {guard}_{way}_..._OFFSET bytes behind its beginning:",
            "nothing is copied then." + (" The input's bytes are reused during a run." if dense["INPUT"] else ""),
        ]
    if copied:
        lines.append(f"Always to be given, since the arena has no room where it lies as a whole: {', '.join(copied)}.")
    if lost:
        lines.append(f"NULL drops it, since it does not lie in the arena as a whole: {', '.join(lost)}.")
    if pushed:
        lines.append(f"Leaves by rows; returns 2 where there is no room, and goes on when called again: {pushed[0]}.")
    for name, after in network.states.items():
        if name in names.inputs and after in names.outputs:
            lines.append(
                f"A state between calls, the same array for both: {names.inputs[name]}, {names.outputs[after]}."
            )
    if pulled:
        lines += [
            f"Rows come from a function, which must not be NULL: {', '.join(pulled)}.",
            "Returns 0, or 1 where it is NULL, and then nothing has been run.",
        ]
    return (
        [f"/* {lines[0]}", *(f" * {line}" for line in lines[1:-1]), f" * {lines[-1]} */"]
        if len(lines) > 1
        else [f"/* {lines[0]} */"]
    )


def _ways(names: Parameters) -> tuple[tuple[str, Mapping[str, str]], ...]:
    return (("INPUT", names.inputs), ("OUTPUT", names.outputs))


def declared(
    prefix: str, plan: Plan, network: Network, names: Parameters, public: Parameters | None = None
) -> list[str]:
    """The parameters of the run function: inputs (a pulled one as a function and its context), then outputs.

    Where an output leaves by rows, there are words to remember where it stopped: zeros before the first call.

    Types are called after `public` names, those of the header, where the C code has others.
    """
    parts = []
    for name, parameter in names.inputs.items():
        if name in plan.pulled:
            kind = f"{prefix}_pull_{(public or names).inputs[name]}"
            parts += [f"{kind} {parameter}", f"void *{parameter}_context"]
        else:
            parts.append(f"const {C_TYPES[network.tensors[name].dtype.value]} *{parameter}")
    parts += [f"{C_TYPES[network.tensors[n].dtype.value]} *{p}" for n, p in names.outputs.items()]
    return [*parts, f"int32_t *{PAUSED}"] if any(map(plan.is_by_rows, names.outputs)) else parts


def _describe(c: CWriter, macro: str, tensor: Tensor) -> None:
    c.line(f"/* {comment(tensor.name)}: {tensor.dtype.value}[{'x'.join(map(str, tensor.shape))}] */")
    c.line(f'#define {macro}_NAME "{_text(tensor.name)}"')
    c.line(f"#define {macro}_SIZE {tensor.size}")
    c.line(f"#define {macro}_RANK {len(tensor.shape)}")
    c.line(f"#define {macro}_SHAPE {{{', '.join(map(str, tensor.shape)) or '1'}}}")
    if tensor.quant is not None and not tensor.quant.is_per_channel:
        c.line(f"#define {macro}_SCALE {number(tensor.quant.scale[0])}")
        c.line(f"#define {macro}_ZERO ({tensor.quant.zero[0]})")


def _locate(c: CWriter, macro: str, plan: Plan, names: Parameters, name: str) -> None:
    view = plan.views[name]
    buffer = plan.buffer_named[view.buffer]
    where = f" /* in {names.arenas[buffer.memory]} */" if len(names.arenas) > 1 else ""
    c.line(f"#define {macro}_OFFSET {buffer.offset + view.offset}{where}")


def lies_densely(plan: Plan, network: Network, name: str) -> bool:
    """Whether an input or output lies in an arena as a whole, row by row, so that a pointer says where it is."""
    if name in network.constants:
        return False
    view = plan.views[name]
    return name not in plan.outside and view.window is None and network.tensors[name].is_dense(view.strides)


def _text(name: str) -> str:
    return "".join(ch if ch.isprintable() and ch.isascii() and ch not in '"\\?' else "_" for ch in name)
