"""Random networks under sanitizers of addresses and undefined behaviour: nothing outside the arena, no luck needed."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import Phase, given, settings

from edgewright.emit import Library
from edgewright.memory import plan as make_plan
from edgewright.network import Network, random_inputs
from edgewright.network.kernels import execute
from tests.emit.test_all import FAMILIES
from tests.emit.test_regions import tiled
from tests.helpers.emitting_batch import agree, libraries
from tests.helpers.random_networks import networks

FLAGS = "-std=c99 -O0 -g1 -fsanitize=address,undefined -fno-sanitize-recover=all -ffp-contract=off -fno-strict-aliasing"
MANY = 480 if os.environ.get("EDGEWRIGHT_THOROUGH") else 4


def program(made: Sequence[Library]) -> str:
    """A main that runs every library on inputs from one file and writes outputs to another."""
    lines = ["#include <stdio.h>", *(f'#include "{library.name}.c"' for library in made)]
    lines += [
        "int main(int count, char **names) {",
        '    FILE *in = fopen(names[1], "rb"), *out = fopen(names[2], "wb");',
    ]
    lines += ["    if (count != 3 || !in || !out) return 2;"]
    for library in made:
        network, tensors = library.network, library.network.tensors
        sizes = [(f"x{i}", tensors[n].bytes) for i, n in enumerate(network.inputs)]
        wanted = [(f"y{i}", tensors[n].bytes) for i, n in enumerate(dict.fromkeys(network.outputs))]
        lines.append("    {")
        lines += [f"        static _Alignas(8) unsigned char {name}[{max(1, size)}];" for name, size in sizes + wanted]
        lines += [f"        if (fread({name}, 1, {size}, in) != {size}) return 3;" for name, size in sizes]
        lines.append(f"        {library.name}_run({', '.join(f'(void *){name}' for name, _ in sizes + wanted)});")
        lines += [f"        fwrite({name}, 1, {size}, out);" for name, size in wanted]
        lines.append("    }")
    return "\n".join([*lines, "    return fclose(out);", "}", ""])


def run_sanitised(made: Sequence[Library], folder: Path) -> None:
    for library in made:
        for name, content in library.files.items():
            (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
    rest = [f'#include "{s}"' for library in made for s in library.sources if s != f"{library.name}.c"]
    (folder / "main.c").write_text("\n".join(rest) + "\n" + program(made))
    command = ["gcc", *FLAGS.split(), "main.c", "-o", "main", "-lm"]
    built = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if "cannot find" in built.stderr and "san" in built.stderr:
        pytest.skip("this compiler has no sanitizers")
    assert built.returncode == 0, built.stderr[-4000:]
    given_ = [random_inputs(library.network, i) for i, library in enumerate(made)]
    values = [values[name] for library, values in zip(made, given_, strict=True) for name in library.network.inputs]
    (folder / "in").write_bytes(b"".join(np.ascontiguousarray(v).tobytes() for v in values))
    done = subprocess.run(["./main", "in", "out"], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:]
    data, at = (folder / "out").read_bytes(), 0
    for library, inputs in zip(made, given_, strict=True):
        network, actual = library.network, {}
        for name in dict.fromkeys(network.outputs):
            tensor = network.tensors[name]
            flat = np.frombuffer(data, tensor.dtype.numpy, tensor.size, at)
            actual[name], at = flat.reshape(tensor.shape), at + tensor.bytes
        agree(network, actual, execute(network, inputs))


def test_random_networks_touch_nothing_but_their_arena(tmp_path):
    """As planned with everything on, and plain in random tiles; families in turn."""
    found: list[Network] = []

    @settings(max_examples=MANY, phases=(Phase.generate,))
    @given(networks(most=6))
    def collect(network: Network) -> None:
        found.append(network)

    collect()
    for turn, first in enumerate(range(0, len(found), 40)):
        batch = found[first : first + 40]
        plans = [
            tiled(make_plan(n, plain=True), i) if i % 4 == 3 else make_plan(n, explain=False)
            for i, n in enumerate(batch)
        ]
        folder = tmp_path / str(turn)
        folder.mkdir()
        order = FAMILIES[turn % 4 :] + FAMILIES[: turn % 4]
        run_sanitised(libraries(batch, order, plans), folder)
