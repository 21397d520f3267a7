"""Exported files before the judges of their formats: XML schemas of CMSIS-SVD and IP-XACT, and compilers of RTL."""

from __future__ import annotations

import shutil
import subprocess
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

from edgewright.hal import examples
from edgewright.hal.design import Design
from edgewright.hal.design_flow import analyse
from edgewright.hal.design_flow import design as make_design
from edgewright.hal.export import exports
from edgewright.hal.importing import imported
from edgewright.hal.layout.paper import lay_out_paper
from tests.hal.designs import design
from tests.hal.test_importing import FILES, HERE, design_of

EXAMPLES = Path(examples.__file__).parent
NAMES = ("uart", "dma", "every attribute")  # arrays of groups and of fields, all side effects
SCHEMAS = {
    "svd": ("cmsis_svd", "schemas/CMSIS-SVD_1_3_11.xsd"),
    "ipxact": ("pyEDAA", "IPXACT/Schema/ieee-1685-2014/index.xsd"),
}


def made(name: str) -> Design:
    if name not in NAMES[:-1]:
        return design()
    analysis = analyse([EXAMPLES / f"{name}.c"], [EXAMPLES])
    return make_design(analysis, lay_out_paper(analysis.description, analysis.spaces, analysis.joints))


@cache
def exported(name: str, kind: str) -> dict[str, bytes]:
    """The files of a design by their names, of one kind that PeakRDL makes; "" for those that it does not."""
    found = exports(made(name), "map", [kind] if kind else [])
    return {path: text if isinstance(text, bytes) else text.encode() for path, text in found.items()}


@cache
def schema(kind: str):
    """The schema of a format, from a package that carries it."""
    etree = pytest.importorskip("lxml.etree", reason="lxml, which checks XML, is not installed")
    package, file = SCHEMAS[kind]
    spec = find_spec(package)
    for folder in spec.submodule_search_locations or () if spec else ():
        if (Path(folder) / file).is_file():
            return etree, etree.XMLSchema(etree.parse(str(Path(folder) / file)))
    pytest.skip(f"the schema of {kind} is not installed: {package} has it")


def complaints(kind: str, text: bytes) -> list[str]:
    etree, judge = schema(kind)
    judge.validate(etree.fromstring(text))
    return [f"{error.line}: {error.message}" for error in judge.error_log]


@pytest.mark.parametrize("name", NAMES)
def test_svd_obeys_its_schema(name):
    assert complaints("svd", exported(name, "")["map.svd"]) == []


@pytest.mark.parametrize("name", HERE)
def test_a_map_that_was_read_obeys_the_schema_again(name, tmp_path):
    design = design_of(imported(FILES / f"{name}.svd", "svd", HERE[name]), tmp_path)
    assert complaints("svd", exports(design, "map")["map.svd"].encode()) == []


def test_the_schema_refuses_what_is_out_of_order():
    text = (
        exported("uart", "")["map.svd"]
        .replace(b"<bitOffset>", b"<bitsOffset>", 1)
        .replace(b"</bitOffset>", b"</bitsOffset>", 1)
    )
    assert complaints("svd", text)


@pytest.mark.parametrize("name", NAMES)
def test_ip_xact_obeys_its_schema(name):
    pytest.importorskip("peakrdl_ipxact")
    files = [text for path, text in exported(name, "ipxact").items() if path.startswith("ipxact/")]
    assert [complaints("ipxact", text) for text in files] == [[]]


def rtl(name: str, folder: Path) -> list[list[Path]]:
    """The files of each kind of device: the package first."""
    pytest.importorskip("peakrdl_regblock")
    found = []
    for path, text in exported(name, "regblock").items():
        if path.startswith("regblock/"):
            (folder / Path(path).name).write_bytes(text)
    for package in sorted(folder.glob("*_pkg.sv")):
        found.append([package, folder / package.name.replace("_pkg", "")])
    return found


@pytest.mark.parametrize("name", NAMES)
def test_rtl_means_something_to_a_compiler(name, tmp_path):
    """slang reads all of SystemVerilog, arrays of structs included: it elaborates every module without an error."""
    pytest.importorskip("pyslang", reason="pyslang, which reads SystemVerilog, is not installed")
    for package, module in rtl(name, tmp_path):
        assert errors_of_slang(package, module) == []
        module.write_text(module.read_text().replace("cpuif_req", "cpuif_request", 1))
        assert errors_of_slang(package, module)


def errors_of_slang(*files: Path) -> list[str]:
    from pyslang.ast import Compilation
    from pyslang.syntax import SyntaxTree

    compilation = Compilation()
    for file in files:
        compilation.addSyntaxTree(SyntaxTree.fromText(file.read_text()))
    return [str(found.code) for found in compilation.getAllDiagnostics() if found.isError()]


@pytest.mark.parametrize("name", NAMES)
def test_rtl_passes_verilator(name, tmp_path):
    if shutil.which("verilator") is None:
        pytest.skip("not installed: verilator")
    for files in rtl(name, tmp_path):
        done = subprocess.run(["verilator", "--lint-only", *files], capture_output=True, text=True, check=False)
        if "Internal Error" in done.stderr:
            pytest.skip("this Verilator fails by itself on arrays of registers, as 5.006 does")
        assert done.returncode == 0 and not done.stderr, done.stderr
