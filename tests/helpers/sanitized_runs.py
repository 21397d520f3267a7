"""The emitted library under the sanitizers: a read beyond a buffer or undefined arithmetic ends the run."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from edgewright.board.toolchain import Toolchain
from edgewright.emit.library import Library
from edgewright.emit.native import compiler
from edgewright.emit.packaging import package_files
from edgewright.errors import EdgewrightError
from edgewright.network import Array

SANITIZERS = (
    *("-std=c99", "-O1", "-g", "-ffp-contract=off", "-fno-strict-aliasing", "-fno-omit-frame-pointer"),
    *("-fsanitize=address,undefined", "-fno-sanitize-recover=all"),
)


def run_sanitized(
    library: Library, inputs: Mapping[str, Array], flags: Sequence[str] = SANITIZERS, cc: Toolchain | None = None
) -> dict[str, Array]:
    """The outputs of the library's own example program, built with the sanitizers; an error with what they found."""
    with tempfile.TemporaryDirectory(prefix="edgewright-") as name:
        folder = Path(name)
        program = build_example(library, folder, flags, cc)
        network = library.network
        outputs = {tensor: folder / f"out{i}.bin" for i, tensor in enumerate(dict.fromkeys(network.outputs))}
        for i, tensor in enumerate(network.inputs):
            (folder / f"in{i}.bin").write_bytes(np.ascontiguousarray(inputs[tensor]).tobytes())
        files = [*(folder / f"in{i}.bin" for i in range(len(network.inputs))), *outputs.values()]
        settings = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0", "UBSAN_OPTIONS": "print_stacktrace=1"}
        done = subprocess.run([program, *files], capture_output=True, text=True, env=settings)
        if done.returncode:
            raise EdgewrightError(f"the sanitizers object to {library.name}:\n{done.stderr[-4000:]}")
        return {
            tensor: np.frombuffer(path.read_bytes(), network.tensors[tensor].dtype.numpy).reshape(
                network.tensors[tensor].shape
            )
            for tensor, path in outputs.items()
        }


def build_example(library: Library, folder: Path, flags: Sequence[str], cc: Toolchain | None = None) -> Path:
    """The example program of the package, compiled in `folder` for this machine."""
    files = {
        path: content
        for path, content in package_files(library, "").items()
        if path.endswith((".c", ".h", ".S", ".bin"))
    }
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content.encode() if isinstance(content, str) else content)
    sources = [f"src/{source}" for source in library.sources]
    threads = ["-pthread"] if library.plan.lanes > 1 else []
    arguments = [*flags, *threads, "-Isrc", "examples/main.c", *sources, "-o", "example", "-lm"]
    (cc or compiler()).run(arguments, folder)
    return folder / "example"
