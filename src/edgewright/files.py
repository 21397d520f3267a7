"""Writing files: all of them or none, each as a whole; and whether a path can be written, before any work is done."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from .errors import InputError

NAME_BYTES = 255  # of a file's name, where the system does not say


def write_atomic(path: str | Path, content: str | bytes) -> Path:
    """The path, once it holds all of `content`. A failure leaves what was there before, and nothing else."""
    write_together({Path(path): content})
    return Path(path)


def write_together(files: Mapping[Path, str | bytes]) -> None:
    """Writes every file or none: each goes to a temporary file beside its target before the first is put in place.

    A link is followed; what is no ordinary file, such as /dev/stdout, is written to directly and last.
    """
    ready: dict[Path, str] = {}
    direct: dict[Path, bytes] = {}
    path = Path()
    try:
        for path, content in files.items():
            data = content.encode() if isinstance(content, str) else content
            target = _target(path)
            if target.exists() and not target.is_file():
                direct[target] = data
                continue
            handle, ready[target] = tempfile.mkstemp(dir=target.parent, prefix=".edgewright-")
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            os.chmod(ready[target], 0o644)
        for path, temporary in ready.items():
            os.replace(temporary, path)
        for path, data in direct.items():
            with path.open("wb") as file:
                file.write(data)
    except OSError as error:
        for temporary in ready.values():
            with suppress(OSError):
                os.unlink(temporary)
        raise InputError(f"cannot write '{path}': {error.strerror or error}") from error


def check_file(path: Path, makes_folders: bool = False) -> None:
    """An error where no file could be written at this path; with `makes_folders`, those above it are made first."""
    try:
        target = _target(path)
        if makes_folders and not target.parent.exists():
            _check_names(target, path)
            check_folder(target.parent)
            return
        if not target.parent.is_dir():
            what = "is a file" if target.parent.exists() else "does not exist"
            raise InputError(f"cannot write '{path}': the folder '{target.parent}' {what}")
        _check_names(target, path)
        if not _may_write(target if target.exists() and not target.is_file() else target.parent):
            raise PermissionError(None, "no permission, or the place is read-only")
    except OSError as error:
        raise InputError(f"cannot write '{path}': {error.strerror or error}") from error


def check_folder(path: Path) -> None:
    """An error where no folder could be made at this path, or no file in it."""
    try:
        if path.is_symlink() and not path.exists():
            raise InputError(f"'{path}' is a link that leads nowhere; give another folder with -o")
        target = path.resolve()
        there = next(folder for folder in (target, *target.parents) if folder.exists())
        if not there.is_dir():
            raise InputError(f"'{there}' is a file; give a folder with -o")
        _check_names(target, path)
        if not _may_write(there):
            raise PermissionError(None, "no permission, or the place is read-only")
    except OSError as error:
        raise InputError(f"cannot write '{path}': {error.strerror or error}") from error


def _target(path: Path) -> Path:
    """Where a file goes: where links lead."""
    target = path.resolve()
    if target.is_dir():
        raise IsADirectoryError(None, "it is a directory")
    return target


def _check_names(target: Path, path: Path) -> None:
    """The system says "too long" where the folders exist; where they do not, it is counted here."""
    if any(len(os.fsencode(part)) > NAME_BYTES for part in target.parts):
        raise InputError(f"cannot write '{path}': File name too long")


def _may_write(place: Path) -> bool:
    return os.access(place, os.W_OK | (os.X_OK if place.is_dir() else 0))
