"""The stages of a flow on disk: each result lies in a folder with the key of what it was made from.

A flow that was killed finds the complete results of its earlier stages and goes on after them.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..files import check_folder, make_folder, output_folder

MARK = "stage.json"  # in each folder of a stage: its key
VERSION = 1  # of all stages: results of another version are made again


def key_of(*parts: Any) -> str:
    """A digest of everything that decides a result: numbers, texts, lists, tables, contents of files."""
    digest = sha256(f"{VERSION}".encode())
    for part in parts:
        content = part if isinstance(part, bytes) else json.dumps(part, sort_keys=True).encode()
        digest.update(len(content).to_bytes(8, "big") + content)
    return digest.hexdigest()


class StageFolder:
    """The folder of a flow, with one folder for each stage."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, stage: str) -> Path:
        return self.folder / stage

    def has(self, stage: str, key: str) -> bool:
        """Whether the stage's result is complete and of this key."""
        return self._key(stage) == key

    def make(self, stage: str, key: str, write: Callable[[Path], None]) -> bool:
        """Fills the stage's folder by `write`, all or nothing. Returns whether its result was there already."""
        if self.has(stage, key):
            return True
        target = self.path(stage)
        if target.exists():
            if self._key(stage) is None and any(target.iterdir()):
                raise InputError(f"'{target}' was not written by a flow; give another folder with -o, or remove it")
            shutil.rmtree(target)
        with output_folder(target) as fresh:
            write(fresh)
            (fresh / MARK).write_text(json.dumps({"stage": stage, "key": key}) + "\n")
        return False

    def _key(self, stage: str) -> str | None:
        try:
            found = json.loads((self.path(stage) / MARK).read_text())["key"]
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return found if isinstance(found, str) else None

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keeps other flows out of the folder, and removes incomplete results of a killed flow."""
        check_folder(self.folder)
        make_folder(self.folder)
        handle = os.open(self.folder / ".lock", os.O_CREAT | os.O_RDWR, 0o644)
        try:
            _lock(handle, self.folder)
            for rest in self.folder.glob(".edgewright-*"):
                shutil.rmtree(rest, ignore_errors=True)
            yield
        finally:
            os.close(handle)


def _lock(handle: int, folder: Path) -> None:
    try:
        import fcntl
    except ImportError:  # Windows has no fcntl
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise InputError(
            f"another flow is at work in '{folder}'; wait for it, or give another folder with -o"
        ) from None
