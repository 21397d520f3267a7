"""Names that mean something to compilers, and characters that mislead readers: emitted C is sound all the same."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from edgewright import compile_model, interpret, write_onnx
from edgewright.compiling import package
from edgewright.emit import TARGETS
from edgewright.emit.names import LONGEST, library_name, parameters, renamed
from edgewright.emit.native import build
from edgewright.emit.packaging import package_files, write_folder
from edgewright.emit.reserved import FILES, WORDS
from edgewright.emit.verify import predicted
from edgewright.errors import InputError
from edgewright.memory import plan as make_plan
from edgewright.network import Builder, random_inputs
from edgewright.network.operators import Clamp, Conv2d
from edgewright.program.options import Options
from tests.helpers.emitting import emit

needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
STRICT = ("-Wall", "-Wextra", "-Wshadow", "-Werror", "-ffp-contract=off", "-fno-strict-aliasing")
TYPES = {f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)} | {"size_t"}
# Misleading in a comment of C, on a page and on a terminal: direction of writing, invisible, line ends, escapes.
WICKED = "\u202e\u2066\u200b\u2028\x1b[31m\x07\x7f\x85"


def chains(names, model="net"):
    """A network of one small layer for each pair of names, which its input and its output are called."""
    b = Builder(model)
    return b.build([b.layer(Clamp(0.0, 6.0), [b.input(x, (1, 2, 2, 1))], y) for x, y in names])


def convolution(b, x, name="conv"):
    """3x3 and 4 channels, the size of an image stays."""
    weights = np.random.default_rng(0).normal(size=(4, 3, 3, 4)).astype(np.float32)
    return b.layer(Conv2d(pads=(1, 1, 1, 1)), [x, b.constant("w", weights)], name)


def words_of(text) -> set[str]:
    """Every identifier in a text of C, without its comments."""
    return {word.lower() for word in re.findall(r"[A-Za-z_]\w*", re.sub(r"/\*.*?\*/", "", text, flags=re.S))}


def syntax(folder: Path, *command: str) -> None:
    done = subprocess.run([*command, "-fsyntax-only", *STRICT], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]


def test_words_of_c_name_no_parameter():
    words = sorted(WORDS | TYPES)
    network = chains(zip(words, (f"{word}\u00e9" for word in reversed(words)), strict=True))
    names = parameters("net", network, ["int", "ram"])
    every = [*names.arenas.values(), *names.inputs.values(), *names.outputs.values()]
    assert len(set(every)) == len(every) == 2 + 2 * len(words) and not (WORDS | TYPES) & set(every)
    assert names.inputs["memcpy"] == "memcpy_2"


@needs_compiler
def test_words_of_c_and_of_the_emitted_code_name_inputs_and_outputs(tmp_path):
    """As inputs and as outputs: it compiles as C in every dialect and as C++, and computes the same."""
    streamed = emit(make_plan(_streamed(), phases=True, pull_rows=True), TARGETS["cortex-m4"], name="net")
    ours = sorted(word for word in words_of(streamed.files["net.c"]) if "_" not in word)
    words = [*dict.fromkeys([*"memcpy memset expf int32_t linux unix errno complex int class".split(), *ours])]  # noqa: SIM905
    network = chains(zip(words, (f"{word}\u00e9" for word in reversed(words)), strict=True))
    library = emit(make_plan(network, plain=True, explain=False), TARGETS["rv32imc"])
    write_folder(tmp_path / "net", package_files(library, "0"), {})
    for dialect in ("c99", "gnu17"):
        syntax(tmp_path / "net", "cc", f"-std={dialect}", "-Isrc", "-include", "errno.h", "src/net.c")
    if shutil.which("c++"):
        syntax(tmp_path / "net", "c++", "-x", "c++", "-std=gnu++17", "-Isrc", "-include", "cmath", "src/net.c")
    inputs = random_inputs(network)
    native = build(library, tmp_path / "built", flags=("-std=gnu99", "-O1", *STRICT))
    found, expected = native.run(inputs), interpret(library.plan, inputs)
    assert all(np.array_equal(found[name], expected[name]) for name in network.outputs)


def _streamed(name="rows"):
    """Two convolutions that run by rows; `rows` is a variable of that code."""
    b = Builder("net")
    x = b.input(name, (1, 8, 8, 4))
    for _ in range(2):
        x = convolution(b, x)
    return b.build([x])


@needs_compiler
@pytest.mark.parametrize("name", ["rows", "turn", "rounds", "i0", "arena_ram", "next_in_x", "context"])
def test_a_pulled_input_named_like_a_variable(name, tmp_path):
    network = _streamed(name)
    plan = make_plan(network, phases=True, pull_rows=True)
    inputs = random_inputs(network)
    found = build(emit(plan, TARGETS["rv32imc"]), tmp_path).run(inputs)
    expected = interpret(plan, inputs)
    assert all(np.allclose(found[name], expected[name], rtol=1e-4, atol=1e-5) for name in found)


def test_names_of_a_library():
    def named(model, given=None):
        return library_name(chains([("x", "y")], model), given)

    assert named("ResNet 8 (int8)") == "resnet_8_int8" and named("x", "Mine") == "mine"
    assert (
        named("stdint") == "stdint_model" and named("features") == "features_model"
    )  # <features.h> stays the system's
    assert named("in_vehicle") == "net_in_vehicle" and named("???") == "m_model"
    assert named("ö" * 3 + "n" * 300) == "n" * LONGEST
    with pytest.raises(InputError, match=r"^the name 'nnn.* has 300 letters.*at most 100 with --name$"):
        named("x", "n" * 300)
    assert all(not re.search(r"[^a-z0-9_]", word) for word in WORDS | FILES)


@needs_compiler
@pytest.mark.parametrize("model", ["math", "string", "stdint", "main", "features", "in", "ew", "linux"])
def test_a_library_called_like_a_header(model, tmp_path):
    library = emit(make_plan(chains([("x", "y")], model)), TARGETS["rv32imc"])
    write_folder(tmp_path / "net", package_files(library, "0"), {})
    command = ["make", "-s", "example"]
    done = subprocess.run(command, cwd=tmp_path / "net", capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.startswith("y:"), done.stderr


def test_memories_with_names_that_clash():
    names = parameters("net", chains([("sram_1", "y")]), ["int", "sram-1", "sram_1", "SRAM-1"])
    assert [*names.arenas.values()] == ["int_2", "sram_1", "sram_1_2", "sram_1_3"]
    assert names.inputs == {"sram_1": "sram_1_4"}


def test_characters_that_mislead_are_replaced_everywhere():
    """In C, build files, pages and data: no character of a model's names steers what shows it."""
    network = chains([(f"in{WICKED}put", f"out{WICKED}put")], f"mo{WICKED}del")
    library = emit(make_plan(network), TARGETS["host"])
    files = package(library, predicted(library)).files
    for path, content in files.items():
        text = content if isinstance(content, str) else content.decode("latin-1")
        if path.endswith((".zip", ".bin")):
            continue
        shown = {c for c in text if not c.isprintable()} - {"\n", "\t"}
        assert not shown, (path, shown)


def test_no_name_ends_a_comment():
    for name in ("a*/b", "a*\\b", "a/*b", "*/ int x; /*", "a\\", "*\\\\", "//*\\/"):
        text = emit(make_plan(chains([(name, f"{name}y")], name)), TARGETS["host"], name="net").files["net.h"]
        code = re.sub(r'"[^"\n]*"|/\*.*?\*/', "", text, flags=re.S)
        assert not re.search(r"\*/|/\*|int x;|[\\]", code), name


# The arena that the caller brings.

CALLER = """
#include <stdio.h>
#include <string.h>
#include "net.h"
#ifdef PULLED
static void rows(void *context, int32_t row, float *target)
{
    memcpy(target, (const float *)context + row * 32, 128);
}
#endif
int main(void)
{
    static uint8_t memory[NET_ARENA_SIZE + 32];
    static float x[NET_INPUT_X_SIZE], y[NET_OUTPUT_Y_SIZE];
    uint8_t *arena = memory + (16 - (uintptr_t)memory % 16);
    const float *in_place = (const float *)(void *)(arena + NET_OUTPUT_Y_OFFSET);
    if (fread(x, 1, sizeof x, stdin) != sizeof x) {
        return 2;
    }
#ifdef PULLED
    if (net_run_in(arena, 0, x, y) != 1 || net_run_in(arena, rows, x, y) != 0) {
        return 3;
    }
    if (net_run_in(arena, rows, x, 0) != 0 || memcmp(in_place, y, sizeof y) != 0) {
        return 4;
    }
#else
    net_run_in(arena, x, y);
    memcpy(arena + NET_INPUT_X_OFFSET, x, sizeof x);
    net_run_in(arena, 0, 0);
    if (memcmp(in_place, y, sizeof y) != 0) {
        return 4;
    }
#endif
    fwrite(y, 1, sizeof y, stdout);
    return 0;
}
"""


@needs_compiler
@pytest.mark.parametrize("pulled", [False, True], ids=["held", "pulled"])
def test_an_arena_that_the_caller_brings(pulled, tmp_path):
    """All that the header declares in that mode is there: it links without the library's arena, and runs."""
    b = Builder("net")
    network = b.build([convolution(b, b.input("x", (1, 8, 8, 4)), "y")])
    plan = make_plan(network, pull_rows=pulled)
    write_folder(tmp_path, package_files(emit(plan, TARGETS["rv32imc"]), "0"), {})
    (tmp_path / "caller.c").write_text(CALLER)
    flags = ["-std=c99", "-O1", *STRICT, "-DNET_CALLER_PLACES_ARENA", *(["-DPULLED"] if pulled else [])]
    sources = sorted(str(path) for path in (tmp_path / "src").glob("*.c"))
    command = ["cc", *flags, "-Isrc", "caller.c", *sources, "-o", "caller", "-lm"]
    built = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    inputs = random_inputs(network)
    done = subprocess.run([tmp_path / "caller"], input=inputs["x"].tobytes(), capture_output=True)
    assert done.returncode == 0
    expected = interpret(plan, inputs)["y"]
    np.testing.assert_allclose(
        np.frombuffer(done.stdout, np.float32).reshape(expected.shape), expected, rtol=1e-4, atol=1e-5
    )
    declared = set(re.findall(r"\b(net_(?:run|input|output)\w*)\(", _preprocessed(tmp_path)))
    assert declared == {"net_run_in"}


def _preprocessed(folder: Path) -> str:
    command = ["cc", "-E", "-P", "-DNET_CALLER_PLACES_ARENA", "src/net.h"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout


@needs_compiler
def test_a_model_whose_name_is_long(tmp_path):
    path = tmp_path / f"{'n' * 240}.onnx"
    write_onnx(chains([("x", "y")]), path)
    done = compile_model(path, tmp_path / "out", check=False)
    assert done.library.name == "n" * LONGEST and (tmp_path / "out" / "src" / f"{'n' * LONGEST}.h").is_file()


@needs_compiler
def test_calls_by_index_and_by_chosen_names_survive_another_export(tmp_path):
    """What an exporter calls its tensors does not matter to code that uses indices, or names of its own."""
    for number, chosen in ((15, {}), (38, {"input:0": "image", "keras_tensor_39": "scores"})):
        network = chains([(f"keras_tensor_{number}", f"keras_tensor_{number + 1}")])
        options = Options(renamed=renamed(network, chosen))
        library = emit(make_plan(network), TARGETS["host"], network, options=options)
        folder = tmp_path / str(number)
        write_folder(folder, package_files(library, "0"), {})
        header = (folder / "src" / "net.h").read_text()
        assert "Layers in parts may take less RAM: --minimise ram." in header
        assert "net_run(" + ("image, scores);" if chosen else "keras_tensor_15, keras_tensor_16);") in header
        named = "net_input_image() == net_input_0()" if chosen else "1"
        (folder / "src" / "user.c").write_text(
            '#include "net.h"\n'
            "static float x[NET_INPUT_0_SIZE], y[NET_OUTPUT_0_SIZE];\n"
            "int main(void)\n{\n    x[0] = 3;\n    net_run(x, y);\n"
            f"    return NET_INPUT_COUNT == 1 && y[0] == 3 && net_output_0()[0] == 3 && {named} ? 0 : 1;\n}}\n"
        )
        sources = [str(path) for path in (folder / "src").glob("*.c")]
        subprocess.run(["cc", *STRICT, *sources, "-o", str(folder / "user"), "-lm"], check=True)
        assert subprocess.run([folder / "user"]).returncode == 0


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"output:1": "y"}, r"no input or output 'output:1'; it has input:0 \('a'\), output:0 \('b'\)"),
        ({"a": "2x"}, "'2x' is no name for C"),
        ({"a": "X"}, "'X' is no name for C"),
        ({"a": "same", "b": "same"}, "'same' is given to two tensors"),
        ({"b": "int"}, "'int' is taken in C or in the library; choose another, such as 'int_x'"),
    ],
)
def test_names_that_cannot_be_given_are_refused(wanted, message):
    with pytest.raises(InputError, match=message):
        renamed(chains([("a", "b")]), wanted)
