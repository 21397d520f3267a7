"""The folder that is handed over: sources, build files for every usual system, an example, a report."""

from .contents import PackageContents, calls_cmsis_nn, packaged, rendered
from .folder import MANIFEST, check_folder, write_folder
from .network import ExampleArgument, example_argument, package_files

__all__ = [
    "MANIFEST",
    "ExampleArgument",
    "PackageContents",
    "calls_cmsis_nn",
    "check_folder",
    "example_argument",
    "package_files",
    "packaged",
    "rendered",
    "write_folder",
]
