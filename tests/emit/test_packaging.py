"""The folder that is handed over: every build system takes it, the same plan gives the same bytes, nothing is lost."""

from __future__ import annotations

import io
import json
import re
import shutil
import subprocess
import zipfile
from pathlib import Path

import numpy as np
import pytest

import edgewright
from edgewright import samples
from edgewright.emit import TARGETS, emit
from edgewright.emit import firmware as virtual_board
from edgewright.emit.packaging import MANIFEST, check_folder, package_files, write_folder
from edgewright.errors import InputError
from edgewright.memory import plan as make_plan
from edgewright.network import Builder
from edgewright.network.operators import Clamp
from tests.helpers.tools import checking

FREESTANDING = Path(virtual_board.__file__).parent / "c" / "include"  # headers for compilers that have none
DEBUG = "-DCMAKE_BUILD_TYPE=Debug"  # compiles faster
STRICT = "-Wall -Wextra -Wconversion -Wshadow -pedantic -Werror"


def needs(*programs: str):
    missing = [program for program in programs if shutil.which(program) is None]
    return pytest.mark.skipif(bool(missing), reason=f"not installed: {', '.join(missing)}")


def network():
    return edgewright.read_model(samples.build("stahl_running_example"))


def library_for(target: str, **options):
    return emit(make_plan(network(), explain=False, **options), TARGETS[target], name="net")


@pytest.fixture(scope="module")
def libraries():
    return {target: library_for(target) for target in ("host", "cortex-m4", "rv32imc")}


@pytest.fixture
def folder(libraries, tmp_path):
    """Of a microcontroller's library, whose C compiles in no time; this machine runs it all the same."""
    write_folder(tmp_path / "net", package_files(libraries["rv32imc"], "0"), {})
    return tmp_path / "net"


def call(*command, cwd=None) -> str:
    done = subprocess.run(list(map(str, command)), cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


def printed(text: str) -> list[float]:
    return [float(word) for word in text.split(":")[1].split() if word != "..."]


@needs("make", "cc")
def test_make_builds_and_the_example_runs(folder, tmp_path):
    """The example on a file gives what the native library gives on the same input."""
    call("make", "-s", "CC=cc", "AR=ar", f"CFLAGS=-O1 {STRICT}", cwd=folder)
    assert (folder / "build" / "libnet.a").is_file()
    assert len(printed(call("make", "-s", "example", cwd=folder))) == 6
    x = edgewright.random_inputs(network(), 3)["input"]
    (tmp_path / "x.bin").write_bytes(x.tobytes())
    call(folder / "build" / "example", tmp_path / "x.bin", tmp_path / "y.bin")
    y = np.frombuffer((tmp_path / "y.bin").read_bytes(), np.float32)
    expected = edgewright.interpret(make_plan(network(), explain=False), {"input": x})["Dense"]
    np.testing.assert_allclose(y, expected.reshape(-1), rtol=1e-4, atol=1e-5)
    (tmp_path / "x.bin").write_bytes(x.tobytes()[:-1])
    short = subprocess.run([folder / "build/example", "x.bin", "y.bin"], cwd=tmp_path, capture_output=True, text=True)
    assert short.returncode == 1 and "expected 1024 bytes" in short.stderr


@needs("cmake", "cc")
def test_cmake_takes_it_as_a_folder_and_as_a_package(folder, tmp_path):
    main = '#include "net.h"\nint main(void) { net_run(0, 0); return NET_OUTPUT_DENSE_SIZE - 6; }\n'
    head = "cmake_minimum_required(VERSION 3.16)\nproject(app C)\nadd_executable(app main.c)\n"
    link = "target_link_libraries(app PRIVATE edgewright::net)\n"
    call("cmake", "-S", folder, "-B", tmp_path / "b", DEBUG, f"-DCMAKE_INSTALL_PREFIX={tmp_path / 'prefix'}")
    call("cmake", "--build", tmp_path / "b")
    call("cmake", "--install", tmp_path / "b")
    assert len(printed(call(tmp_path / "b" / "net_example"))) == 6
    for way, text in (
        ("sub", f"add_subdirectory({folder} net)\n"),
        ("find", f"list(APPEND CMAKE_PREFIX_PATH {tmp_path / 'prefix'})\nfind_package(net 1 REQUIRED)\n"),
    ):
        app = tmp_path / way
        app.mkdir()
        (app / "main.c").write_text(main)
        (app / "CMakeLists.txt").write_text(head + text + link)
        call("cmake", "-S", app, "-B", app / "b", DEBUG)
        call("cmake", "--build", app / "b")
        call(app / "b" / "app")


@pytest.mark.parametrize("target", ["host", "cortex-m4", "rv32imc"])
def test_all_of_it_is_also_cpp(libraries, target, tmp_path):
    write_folder(tmp_path / "net", package_files(libraries[target], "0"), {})
    for source in [*(tmp_path / "net/src").glob("*.c"), tmp_path / "net/examples/main.c"]:
        call(*checking("c++"), "-x", "c++", "-std=c++11", "-I", tmp_path / "net/src", source)


@needs("make", "arm-none-eabi-gcc")
def test_make_builds_for_a_microcontroller(libraries, tmp_path):
    write_folder(tmp_path / "net", package_files(libraries["cortex-m4"], "0"), {})
    makefile = (tmp_path / "net" / "Makefile").read_text()
    assert "CC = arm-none-eabi-gcc" in makefile and "-mcpu=cortex-m4" in makefile
    flags = f"-Os -mcpu=cortex-m4 -mthumb -ffreestanding -I{FREESTANDING}"
    call("make", "-s", f"CFLAGS={flags}", cwd=tmp_path / "net")
    assert "net_weights.c.o" in call("make", "-s", "size", cwd=tmp_path / "net")


@needs("make")
def test_clang_makes_no_gathers_on_helium(libraries, tmp_path):
    """Its option reaches compilers that take it (as `true` takes all) and no others, and no other target's."""
    option = "-mllvm -enable-arm-maskedgatscat=false"
    (tmp_path / "src").mkdir()
    for target, library in (("cortex-m55", library_for("cortex-m55")), ("cortex-m4", libraries["cortex-m4"])):
        is_helium = target == "cortex-m55"
        files = package_files(library, "0")
        for name in ("CMakeLists.txt", "zephyr/CMakeLists.txt"):
            assert (f"$<$<COMPILE_LANG_AND_ID:C,Clang,ARMClang>:SHELL:{option}>" in files[name]) == is_helium
        for source in library.files:
            (tmp_path / "src" / source).touch()
        (tmp_path / "Makefile").write_text(files["Makefile"])
        taken, refused = (call("make", "-n", f"CC={tool}", cwd=tmp_path) for tool in ("true", "false"))
        assert "-c src/net.c" in refused and option not in refused
        assert (option in taken) == is_helium


def test_the_sketch_compiles_against_a_small_arduino(libraries, tmp_path):
    """The sketch, the pulled one too, with a stand-in for the Arduino core."""
    core = (
        "#include <stddef.h>\n#include <stdint.h>\n#include <stdio.h>\n"
        "struct { void begin(int) {} template <class T> void print(T) {} void println() {}\n"
        "  template <class T> void println(T) {} } Serial;\n"
        "unsigned long micros() { return 0; }\nvoid delay(int) {}\n"
    )
    for name, library in (("held", libraries["cortex-m4"]), ("pulled", library_for("cortex-m4", pull_rows=True))):
        write_folder(tmp_path / name, package_files(library, "0"), {})
        sketch = tmp_path / name / "examples/net/net.ino"
        (tmp_path / "core.h").write_text(core)
        flags = ["-x", "c++", "-std=c++11", "-Wall", "-Wextra", "-Werror"]
        call(*checking("c++"), *flags, "-include", tmp_path / "core.h", "-I", tmp_path / name / "src", sketch)
    assert "pull_input" in sketch.read_text() and "net_input_input()" not in sketch.read_text()


@needs("cc")
def test_inputs_that_come_by_rows():
    from tests.helpers.sanitized_runs import run_sanitized

    library = library_for("rv32imc", pull_rows=True)
    inputs = edgewright.random_inputs(network(), 1)
    expected = edgewright.interpret(make_plan(network(), explain=False), inputs)
    np.testing.assert_allclose(run_sanitized(library, inputs)["Dense"], expected["Dense"], rtol=1e-4, atol=1e-5)
    assert "net_run(input, input_context, dense)" in package_files(library, "0")["README.md"]


def test_what_the_other_systems_read(libraries):
    files = package_files(libraries["host"], "0")
    manifest = json.loads(files["library.json"])
    assert manifest["build"]["srcDir"] == "src" and f"src/{manifest['headers']}" in files
    example = manifest["examples"][0]
    assert all(f"{example['base']}/{name}" in files for name in example["files"])
    properties = dict(line.split("=", 1) for line in files["library.properties"].splitlines())
    wanted = "name version author maintainer sentence paragraph category url architectures includes"
    assert " ".join(properties) == wanted and f"src/{properties['includes']}" in files
    assert re.fullmatch(r"\d+\.\d+\.\d+", properties["version"]) and properties["name"] == "net"
    module = re.findall(r"^  (\w+): (.+)$", files["zephyr/module.yml"], re.M)
    assert dict(module) == {"cmake": "zephyr", "kconfig": "zephyr/Kconfig"}
    assert "config EDGEWRIGHT_NET\n" in files["zephyr/Kconfig"]
    for name, root in (
        ("zephyr/CMakeLists.txt", r"CURRENT_LIST_DIR\}/\.\./(src/\S+\.[cS])"),
        ("CMakeLists.txt", r"^    (src/\S+)"),
    ):
        named = re.findall(root, files[name], re.M)
        assert sorted(named) == sorted(f"src/{source}" for source in libraries["host"].sources)
    assert "idf_component_register(SRCS ${net_sources} INCLUDE_DIRS src)" in files["CMakeLists.txt"]
    assert files["idf_component.yml"].startswith('version: "1.0.0"\n')


def test_yaml_files_are_yaml(libraries):
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    files = package_files(libraries["host"], "0")
    assert yaml.safe_load(files["zephyr/module.yml"])["build"]["kconfig"] in files
    assert yaml.safe_load(files["idf_component.yml"])["dependencies"] == {"idf": ">=4.4"}


def test_the_same_library_gives_the_same_bytes(libraries):
    again = library_for("cortex-m4")
    first, second = package_files(libraries["cortex-m4"], "0"), package_files(again, "0")
    assert first == second
    with zipfile.ZipFile(io.BytesIO(first["net-arduino.zip"])) as archive:
        names = archive.namelist()
        assert names == sorted(names) and {
            "net/library.properties",
            "net/src/net.h",
            "net/examples/net/net.ino",
        } <= set(names)
        assert {entry.date_time for entry in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        assert archive.read("net/src/net.c").decode() == first["src/net.c"]


@needs("cmake", "make", "cc")
def test_large_weights_are_found_by_every_build(tmp_path, monkeypatch):
    """They come as a binary file that the assembler includes."""
    monkeypatch.setattr("edgewright.emit.files.LARGE", 1000)
    library = library_for("rv32imc")
    assert "net_weights.S" in library.files and "net_weights.bin" in library.files
    write_folder(tmp_path / "net", package_files(library, "0"), {})
    example = printed(call("make", "-s", "example", cwd=tmp_path / "net"))
    call("make", "-s", "CC=cc", "AR=ar", "CFLAGS=-O1", cwd=tmp_path / "net")
    call("cmake", "-S", tmp_path / "net", "-B", tmp_path / "b", DEBUG)
    call("cmake", "--build", tmp_path / "b")
    np.testing.assert_allclose(printed(call(tmp_path / "b" / "net_example")), example, rtol=1e-4)


@needs("cmake", "cc")
def test_names_that_mean_something_to_others(tmp_path):
    """A model called `test`, with tensors named like code and like keywords: nothing clashes, all is quoted."""
    b = Builder("test")
    x = b.input('in "put" %d */ ${HOME}', (1, 4, 4, 2))
    y = b.layer(Clamp(0.0, 6.0), [x], "int")
    library = emit(make_plan(b.build([y])), TARGETS["host"])
    write_folder(tmp_path / "net", package_files(library, "0"), {})
    call("cmake", "-S", tmp_path / "net", "-B", tmp_path / "b", DEBUG)
    call("cmake", "--build", tmp_path / "b")
    assert len(printed(call(tmp_path / "b" / "test_example"))) == 16


FILES = {"a.txt": "a", "sub/b.txt": b"b"}


class TestFolders:
    def test_a_folder_of_ours_is_renewed_and_strangers_files_stay(self, tmp_path):
        out = tmp_path / "out"
        write_folder(out, FILES, {"name": "one"})
        (out / "mine.txt").write_text("mine")
        (out / "build").mkdir()
        (out / "build" / "x.o").write_text("object")
        write_folder(out, {"a.txt": "new"}, {"name": "two"})
        assert {str(p.relative_to(out)) for p in out.rglob("*") if p.is_file()} == {
            "a.txt",
            "mine.txt",
            "build/x.o",
            MANIFEST,
        }
        assert (out / "a.txt").read_text() == "new" and not (out / "sub").exists()
        assert json.loads((out / MANIFEST).read_text())["name"] == "two"

    def test_a_strangers_folder_is_refused(self, tmp_path):
        (tmp_path / "thesis.tex").write_text("years of work")
        with pytest.raises(InputError, match=r"not empty and was not written by edgewright.*--force"):
            write_folder(tmp_path, FILES, {})
        assert [p.name for p in tmp_path.iterdir()] == ["thesis.tex"]
        write_folder(tmp_path, FILES, {}, force=True)
        assert (tmp_path / "thesis.tex").read_text() == "years of work" and (tmp_path / "sub/b.txt").exists()

    @pytest.mark.parametrize("text", ["", "[]", "{}", '{"files": 3}', "not json"])
    def test_a_manifest_that_is_none_marks_nothing(self, tmp_path, text):
        (tmp_path / MANIFEST).write_text(text)
        with pytest.raises(InputError, match="not written by edgewright"):
            check_folder(tmp_path)

    def test_a_forged_manifest_deletes_nothing_outside(self, tmp_path):
        (tmp_path / "precious").write_text("x")
        out = tmp_path / "out"
        out.mkdir()
        (out / MANIFEST).write_text(json.dumps({"files": {"../precious": "", str(tmp_path / "precious"): ""}}))
        write_folder(out, FILES, {})
        assert (tmp_path / "precious").exists()

    def test_a_file_or_a_folder_in_the_way(self, tmp_path):
        (tmp_path / "file").write_text("x")
        with pytest.raises(InputError, match="is a file"):
            write_folder(tmp_path / "file", FILES, {})
        out = tmp_path / "out"
        write_folder(out, {"a.txt": "a"}, {})
        (out / "sub").write_text("a file")
        with pytest.raises(InputError, match="where a folder is to be made"):
            write_folder(out, FILES, {})
        (out / "sub").unlink()
        (out / "a.txt").unlink()
        (out / "a.txt").mkdir()
        with pytest.raises(InputError, match="where a file is to be written"):
            write_folder(out, FILES, {})

    def test_a_failure_leaves_nothing(self, tmp_path, monkeypatch):
        def full(self, data):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(Path, "write_bytes", full)
        with pytest.raises(InputError, match="No space left"):
            write_folder(tmp_path / "out", FILES, {})
        assert list(tmp_path.iterdir()) == []
