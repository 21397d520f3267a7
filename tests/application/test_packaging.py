"""The package of an application: every build system takes it, its example runs in a legal order, as its header says."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from edgewright import samples
from edgewright.application.compiled import application_package
from edgewright.application.draft import load_application
from edgewright.application.library import AppLibrary, emit_application
from edgewright.application.search import JointSearch
from edgewright.cli.main import main
from edgewright.emit.deployment.interface import call_order, described_end, overwriters
from edgewright.emit.packaging import write_folder
from edgewright.network.kernels import execute
from tests.helpers.tools import checking, needs

STRICT = "-Wall -Wextra -Wconversion -Wshadow -pedantic -Werror"


@pytest.fixture(scope="module")
def camera(tmp_path_factory: pytest.TempPathFactory) -> AppLibrary:
    """All kinds of relations, for a microcontroller: its C compiles in no time."""
    folder = tmp_path_factory.mktemp("camera")
    file = samples.write_application("tiny_application", folder)
    file.write_text('target = "rv32imc"\n' + file.read_text())
    return emit_application(app := load_application(file), JointSearch(app).fastest.layout)


def call(*command: str | Path, cwd: Path | None = None) -> str:
    done = subprocess.run(list(map(str, command)), cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


def ramp(count: int) -> np.ndarray:
    return ((np.arange(count) % 255 - 127) / np.float32(127)).astype(np.float32)


def test_make_builds_it_and_the_example_computes_what_the_networks_do(camera: AppLibrary, tmp_path: Path) -> None:
    needs("make", "cc")
    write_folder(tmp_path / "app", application_package(camera, "0"), {})
    call("make", "-s", "CC=cc", "AR=ar", f"CFLAGS=-O1 {STRICT}", cwd=tmp_path / "app")
    printed = dict(line.split(":", 1) for line in call("make", "-s", "example", cwd=tmp_path / "app").splitlines())
    networks = camera.application.networks
    frame = ramp(16 * 16 * 3).reshape(1, 16, 16, 3)
    features = execute(networks["detect"], {"input": frame})
    first = next(iter(features.values()))
    expected = {
        "wake words": execute(networks["wake"], {"input": ramp(96).reshape(1, 12, 8, 1)}),
        "classify classes": execute(networks["classify"], {"input": frame}),
        "landmarks points": execute(networks["landmarks"], {"input": first}),
        "gesture.3 third": execute(networks["gesture"], {"input": ramp(200).reshape(1, 10, 10, 2)}),
    }
    for key, outputs in expected.items():
        shown = [float(word) for word in printed[key].split() if word != "..."]
        np.testing.assert_allclose(shown, next(iter(outputs.values())).reshape(-1)[:16], rtol=1e-3, atol=1e-4)


def test_cmake_takes_it_as_a_package(camera: AppLibrary, tmp_path: Path) -> None:
    needs("cmake", "cc")
    write_folder(tmp_path / "app", application_package(camera, "0"), {})
    prefix = f"-DCMAKE_INSTALL_PREFIX={tmp_path / 'prefix'}"
    call("cmake", "-S", tmp_path / "app", "-B", tmp_path / "b", "-DCMAKE_BUILD_TYPE=Debug", prefix)
    call("cmake", "--build", tmp_path / "b")
    call("cmake", "--install", tmp_path / "b")
    call(tmp_path / "b" / "app_example")
    user = tmp_path / "user"
    user.mkdir()
    (user / "main.c").write_text('#include "app.h"\nint main(void) { return app_busy(); }\n')
    (user / "CMakeLists.txt").write_text(
        f"cmake_minimum_required(VERSION 3.16)\nproject(user C)\nadd_executable(user main.c)\n"
        f"list(APPEND CMAKE_PREFIX_PATH {tmp_path / 'prefix'})\nfind_package(app 1 REQUIRED)\n"
        "target_link_libraries(user PRIVATE edgewright::app)\n"
    )
    call("cmake", "-S", user, "-B", user / "b")
    call("cmake", "--build", user / "b")
    call(user / "b" / "user")


def test_examples_and_sources_are_also_cpp(camera: AppLibrary, tmp_path: Path) -> None:
    write_folder(tmp_path / "app", application_package(camera, "0"), {})
    core = (
        "#include <stddef.h>\n#include <stdint.h>\n"
        "struct { void begin(int) {} template <class T> void print(T) {} void println() {}\n"
        "  template <class T> void println(T) {} } Serial;\nvoid delay(int) {}\n"
    )
    (tmp_path / "core.h").write_text(core)
    for source in [*(tmp_path / "app/src").glob("*.c"), tmp_path / "app/examples/main.c"]:
        call(*checking("c++"), "-x", "c++", "-std=c++11", "-I", tmp_path / "app/src", source)
    sketch = tmp_path / "app/examples/app/app.ino"
    flags = ["-x", "c++", "-std=c++11", "-Wall", "-Wextra", "-Werror", "-include", tmp_path / "core.h"]
    call(*checking("c++"), *flags, "-I", tmp_path / "app/src", sketch)


def test_other_systems_find_all_sources_and_the_readme_says_how(camera: AppLibrary) -> None:
    files = application_package(camera, "0")
    for name, root in (
        ("zephyr/CMakeLists.txt", r"CURRENT_LIST_DIR\}/\.\./(src/\S+\.[cS])"),
        ("CMakeLists.txt", r"^    (src/\S+)"),
    ):
        assert sorted(re.findall(root, str(files[name]), re.M)) == sorted(f"src/{one}" for one in camera.sources)
    readme = str(files["README.md"])
    for text in ("app_run_landmarks(", "app_poll()", "APP_FREERTOS", "`app_buffer_log()` | 64 | always", "APP_EMPTY"):
        assert text in readme
    assert files == application_package(camera, "0")
    assert "neural networks in one arena" in str(files["library.properties"])


def test_calls_come_in_a_legal_order(camera: AppLibrary) -> None:
    names = [member.name for member in call_order(camera.code)]
    assert names.index("detect") < min(names.index("classify"), names.index("landmarks"))
    at = names.index("gesture.1")  # a frame on its way through a pipeline holds others up
    assert names[at : at + 3] == ["gesture.1", "gesture.2", "gesture.3"] and len(names) == 8


def test_the_header_says_types_axes_and_who_overwrites(camera: AppLibrary) -> None:
    header = str(camera.files["app.h"])
    assert "input input: float32, NHWC 1x16x16x3." in header and "output words: float32, 1x3." in header
    assert "app_output_classify_classes() points to it; overwritten by classify.\n" in header  # it is kept
    network = camera.application.networks["detect"]
    assert described_end(network, network.outputs[0]) == "float32, NHWC 1x8x8x4"


def test_overwriters_are_those_whose_buffers_overlap(camera: AppLibrary) -> None:
    """Byte by byte: every buffer that another plan, or a slot of a pipeline, has in the same place."""
    deployment = camera.deployment
    for member in deployment.parts:
        plan = deployment.plans[member.name]
        for tensor in (*member.network.inputs, *member.network.outputs):
            if tensor in plan.outside:
                continue
            view = plan.views[tensor]
            start = plan.buffer_named[view.buffer].offset + view.offset
            mine = set(range(start, start + member.network.tensors[tensor].bytes))
            said = overwriters(camera.code, member, tensor)
            for other in deployment.parts:
                if other is member:
                    continue
                theirs = [b for b in deployment.plans[other.name].buffers if b.memory == "ram"]
                meets = any(mine & set(range(b.offset, b.offset + b.size)) for b in theirs)
                assert meets or other.name not in said or deployment.queues
                handed = any(other.name in fifo.reading for fifo in deployment.shared)
                assert not meets or other.name in said or handed


def test_the_stack_stands_beside_the_arena(tmp_path: Path) -> None:
    """As measured on the virtual board, and in all with arena and state beside the RAM that there is."""
    needs("arm-none-eabi-gcc", "qemu-system-arm")
    samples.write_application("tiny_application", tmp_path)
    entries = "".join(f'[[network]]\nname = "{n}"\nfile = "{n}.onnx"\nplain = true\n' for n in ("wake", "monitor"))
    (tmp_path / "few.toml").write_text(f'board = "nucleo-f446re"\n{entries}')
    command = ["app", str(tmp_path / "few.toml"), "--compile", "-o", str(tmp_path / "out")]
    table = CliRunner().invoke(main, command).output
    found = json.loads(CliRunner().invoke(main, [*command, "--json"]).output)
    assert 0 < found["stack_bytes"] == found["board"]["stack_bytes"]
    assert found["ram_bytes"] == found["peak_bytes"] + found["state_bytes"] + found["stack_bytes"]
    row = re.search(r"in all\W+([\d,]+)\W+of 131,072 B", table)
    assert row is not None and row[1] == f"{found['ram_bytes']:,}"
    assert json.loads((tmp_path / "out" / "report.json").read_text())["stack_bytes"] == found["stack_bytes"]
