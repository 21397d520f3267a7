"""TiGrIS in a virtual environment of its own, so that it can be measured in the same run as ours."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path


def provide_tigris(folder: Path) -> str:
    """Puts the tool `tigris` within reach, installed into the folder where it is not; the reason where that fails."""
    if shutil.which("tigris") or shutil.which("tigris", path=str(Path(sys.executable).parent)):
        return ""
    binaries = folder / ("Scripts" if os.name == "nt" else "bin")
    reason = "" if shutil.which("tigris", path=str(binaries)) else _installed(folder, binaries)
    if not reason:
        os.environ["PATH"] = f"{binaries.resolve()}{os.pathsep}{os.environ['PATH']}"
    return reason


def _installed(folder: Path, binaries: Path) -> str:
    print(f"installing tigris-ml into {folder} …", file=sys.stderr)
    try:
        venv.create(folder, with_pip=True, clear=True)
        command = [str(binaries / "python"), "-m", "pip", "install", "--quiet", "tigris-ml"]
        subprocess.run(command, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        told = str(getattr(error, "stderr", None) or error).strip().splitlines()
        return f"tigris-ml cannot be installed: {told[-1] if told else error}"
    return ""
