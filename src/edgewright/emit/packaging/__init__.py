"""The folder that is handed over: sources, build files for every usual system, an example, a report."""

from .contents import calls_cmsis_nn, package_files
from .folder import MANIFEST, check_folder, write_folder

__all__ = ["MANIFEST", "calls_cmsis_nn", "check_folder", "package_files", "write_folder"]
