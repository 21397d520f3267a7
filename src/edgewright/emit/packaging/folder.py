"""Putting a package in its place: a folder of ours is renewed, a stranger's is left alone, nothing is half-written."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import Any
from zipfile import ZIP_STORED, ZipFile, ZipInfo

from ...errors import InputError
from ...files import check_folder as check_place
from ...files import output_folder

MANIFEST = "edgewright.json"  # marks a folder as ours and lists our files in it


def write_folder(output: Path, files: Mapping[str, str | bytes], about: Mapping[str, Any], force: bool = False) -> None:
    """Writes the files and the manifest. Files in the folder that are not ours stay.

    All are first written to a folder of their own, so that a full disk or a missing permission leaves what was there.
    """
    old = check_folder(output, force)
    _check_paths(output, files)
    contents = {path: content.encode() if isinstance(content, str) else content for path, content in files.items()}
    listed = {path: sha256(content).hexdigest() for path, content in sorted(contents.items())}
    contents[MANIFEST] = (json.dumps({**about, "files": listed}, indent=1) + "\n").encode()
    try:
        _put(output, contents, old)
    except OSError as error:
        raise InputError(f"cannot write '{output}': {error.strerror or error}") from error


def check_folder(output: Path, force: bool = False) -> frozenset[str]:
    """Our files that lie in the folder already; an error when it is somebody else's and not empty."""
    check_place(output)
    if not output.exists() or not any(output.iterdir()):
        return frozenset()
    ours = _listed(output / MANIFEST)
    if ours is None and not force:
        raise InputError(
            f"the folder '{output}' is not empty and was not written by edgewright; "
            "give another one with -o, or --force to write into it"
        )
    return ours or frozenset()


def _listed(manifest: Path) -> frozenset[str] | None:
    try:
        files = json.loads(manifest.read_text())["files"]
        return frozenset(path for path in files if _is_inside(path))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _is_inside(path: str) -> bool:
    """Whether a path of a manifest leads into its folder: what it lists may be deleted."""
    pure = PurePosixPath(path)
    return not pure.is_absolute() and ".." not in pure.parts


def _check_paths(output: Path, files: Mapping[str, str | bytes]) -> None:
    """A folder where a file goes, or a file where a folder goes, is found before anything is moved."""
    for path in (*files, MANIFEST):
        if (output / path).is_dir():
            raise InputError(f"'{output / path}' is a folder where a file is to be written; move it away")
        for parent in PurePosixPath(path).parents[:-1]:
            place = output / parent
            if place.exists() and not place.is_dir():
                raise InputError(f"'{place}' is a file where a folder is to be made; move it away")


def _put(output: Path, contents: Mapping[str, bytes], old: frozenset[str]) -> None:
    """All files, in place of those that only the last package had."""
    with output_folder(output) as fresh:
        for path, content in contents.items():
            (fresh / path).parent.mkdir(parents=True, exist_ok=True)
            (fresh / path).write_bytes(content)
    for path in old - contents.keys():
        (output / path).unlink(missing_ok=True)
        for parent in PurePosixPath(path).parents[:-1]:
            if (output / parent).is_dir() and not any((output / parent).iterdir()):
                (output / parent).rmdir()


_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest date that a zip file knows


def zipped(folder: str, files: Mapping[str, str | bytes]) -> bytes:
    """A zip file with `files` below `folder`: sorted, without dates, stored as they are (compressors differ)."""
    buffer = BytesIO()
    with ZipFile(buffer, "w", ZIP_STORED) as archive:
        for path, content in sorted(files.items()):
            entry = ZipInfo(f"{folder}/{path}", _EPOCH)
            entry.create_system = 3  # Unix, whatever wrote it
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, content)
    return buffer.getvalue()
