"""File access for the whole tool: read errors as one sentence, output paths checked early, several files written all or
none."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from enum import Enum
from pathlib import Path

from .errors import InputError
from .interrupts import uninterrupted

MODEL_ADVICE = "give the path of an .onnx or .tflite model"
NAME_BYTES = 255  # bytes of a file name, if the system does not report its limit


def is_special(path: str | Path) -> bool:
    """Whether the path is a pipe, a socket or a device; opening one could block forever."""
    return os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)


def read_file(path: str | Path, advice: str, most: int = -1) -> bytes:
    """The content of a regular file, or its first `most` bytes; errors say why it cannot be read and end with the
    advice."""
    try:
        if is_special(path):
            raise InputError(f"'{path}' is no regular file; {advice}")
        with open(path, "rb") as file:
            return file.read(most)
    except FileNotFoundError:
        raise InputError(f"there is no file '{path}'; {advice}") from None
    except IsADirectoryError:
        raise InputError(f"'{path}' is a directory; {advice}") from None
    except (OSError, ValueError) as error:  # ValueError: a path with a NUL in it
        raise InputError(f"cannot read '{path}': {getattr(error, 'strerror', None) or error}; {advice}") from None


def write_atomic(path: str | Path, content: str | bytes) -> Path:
    """Writes the file and returns its path. If writing fails, the old content stays."""
    write_together({Path(path): content})
    return Path(path)


def write_together(files: Mapping[Path, str | bytes]) -> None:
    """Writes all files or none: each goes to a temporary file beside its target before the first one is moved into
    place.

    Links are followed; special files such as /dev/stdout are written directly and last.
    """
    ready: dict[Path, str] = {}
    direct: dict[Path, bytes] = {}
    path = Path()
    try:
        for path, content in files.items():
            data = content.encode() if isinstance(content, str) else content
            target = _target(path)
            if is_special(target):
                direct[target] = data
                continue
            handle, ready[target] = tempfile.mkstemp(dir=target.parent, prefix=".edgewright-")
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            os.chmod(ready[target], 0o644)
        with uninterrupted():
            for path, temporary in ready.items():
                os.replace(temporary, path)
        for path, data in direct.items():
            with path.open("wb") as file:
                file.write(data)
    except OSError as error:
        raise InputError(f"cannot write '{path}': {error.strerror or error}") from error
    finally:
        for temporary in ready.values():
            with suppress(OSError):  # already moved into place
                os.unlink(temporary)


class FolderMode(Enum):
    """What becomes of an output folder when the block that fills it fails."""

    ATOMIC = "files appear together at the end, or none does"
    UNDO = "folders that were created for it are removed if they are empty"


@contextmanager
def output_folder(path: Path, mode: FolderMode = FolderMode.ATOMIC) -> Iterator[Path]:
    """The folder to write to, created with its parents.

    With `ATOMIC` it is a temporary folder, whose files move to `path` only when the block ends: they replace files of
    the same name one by one, and other files there stay.
    """
    if mode is FolderMode.ATOMIC:
        with _temporary_folder(path) as fresh:
            yield fresh
        return
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]  # the innermost first
    make_folder(path)
    try:
        yield path
    except BaseException:
        for folder in missing:
            with suppress(OSError):  # not empty
                folder.rmdir()
        raise


@contextmanager
def _temporary_folder(path: Path) -> Iterator[Path]:
    try:
        target = path.resolve()
        target.parent.mkdir(parents=True, exist_ok=True)
        place = target if target.exists() else target.parent  # where there is permission to write
        fresh = Path(tempfile.mkdtemp(dir=place, prefix=".edgewright-"))
        try:
            yield fresh
            with uninterrupted():
                fresh.chmod(0o755)
                if not target.exists():
                    os.replace(fresh, target)
                    return
                for file in sorted(each for each in fresh.rglob("*") if not each.is_dir()):
                    put = target / file.relative_to(fresh)
                    put.parent.mkdir(parents=True, exist_ok=True)
                    os.replace(file, put)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
    except OSError as error:
        raise InputError(f"cannot write '{path}': {error.strerror or error}") from error


def make_folder(path: Path) -> None:
    """Creates a folder that stays, with its parents, like `mkdir -p`."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot make the folder '{path}': {error.strerror or error}") from error


def check_file(path: Path, makes_folders: bool = False) -> None:
    """Raises an error if no file could be written at this path; with `makes_folders`, missing parent folders are
    created."""
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
        if not target.exists() or target.is_file():
            _try(target.parent)
    except OSError as error:
        raise InputError(f"cannot write '{path}': {error.strerror or error}") from error


def check_folder(path: Path) -> None:
    """Raises an error if no folder could be created at this path, or no file in it."""
    try:
        if path.is_symlink() and not path.exists():
            raise InputError(f"'{path}' is a link that leads nowhere; give another folder with -o")
        target = _resolved(path)
        there = next(folder for folder in (target, *target.parents) if folder.exists())
        if not there.is_dir():
            raise InputError(f"'{there}' is a file; give a folder with -o")
        _check_names(target, path)
        _try(there)
    except OSError as error:
        raise InputError(f"cannot write '{path}': {error.strerror or error}") from error


def _target(path: Path) -> Path:
    """The file to write: the target of links, unless it is a device or a pipe."""
    if is_special(path):
        return path
    target = _resolved(path)
    if target.is_dir():
        raise IsADirectoryError(None, "it is a directory")
    return target


def _resolved(path: Path) -> Path:
    try:
        return path.resolve()
    except RuntimeError:  # raised by Python for circular links
        raise OSError(None, "links lead in a circle") from None


def _check_names(target: Path, path: Path) -> None:
    """The system reports names that are too long only where the folders exist, so the length is checked here."""
    if any(len(os.fsencode(part)) > NAME_BYTES for part in target.parts):
        raise InputError(f"cannot write '{path}': File name too long")


def _try(folder: Path) -> None:
    """Creates and removes a file in the folder: the only reliable check of permissions."""
    handle, name = tempfile.mkstemp(dir=folder, prefix=".edgewright-")
    os.close(handle)
    os.unlink(name)
