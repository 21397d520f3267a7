"""Files on a device, by the SHA-256 of their content: received in pieces, resumed after a loss, checked, kept."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from errno import EDQUOT, ENOSPC
from pathlib import Path

from ...errors import InputError, RunError

MOST_BYTES = 1 << 31  # of a file
_DIGEST = re.compile(r"[0-9a-f]{64}")
_PART = ".part"
_LOCK_S = 30.0  # that one waits for another process which uses the folder


class FileStore:
    """A folder that only its owner can read. Several processes may use it at the same time.

    Names that others send are joined as text: `Path` interns the parts of a path, and Python 3.12 keeps interned text
    for ever, so that a node would grow with each new name.
    """

    def __init__(self, folder: Path, most_bytes: int = MOST_BYTES) -> None:
        """`most_bytes` is the largest file that is accepted."""
        self.folder, self.most_bytes = folder, most_bytes
        self._sizes: dict[str, int] = {}  # of files to come
        self._checked: dict[str, tuple[int, int, int]] = {}  # complete files whose content was compared
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.chmod(folder, 0o700)
        except OSError as error:
            raise InputError(f"cannot use the folder '{folder}' for files: {error.strerror or error}") from error

    def reserve(self, sizes: Mapping[str, int]) -> dict[str, int]:
        """The offsets of the files still missing; an error if what is missing of them does not fit on the disk."""
        for digest, size in sizes.items():
            _check_digest(digest)
            if not 0 <= size <= self.most_bytes:
                raise InputError(f"a file of {size:,} bytes is too large; at most {self.most_bytes:,} are accepted")
        offsets = self.offsets(sizes)
        missing = sum(max(sizes[digest] - there, 0) for digest, there in offsets.items())
        if missing > self._free:
            raise self._refusal(OSError(ENOSPC, ""), missing)
        self._sizes = {digest: sizes[digest] for digest in offsets}
        return offsets

    def offsets(self, digests: Iterable[str]) -> dict[str, int]:
        """The bytes already here of those files that are not complete."""
        parts = {digest: self._part(digest) for digest in digests}
        with self._lock():
            return {digest: _size(part) for digest, part in parts.items() if not self._is_complete(digest)}

    def append(self, digest: str, offset: int, chunk: bytes | bytearray | memoryview) -> None:
        """Writes the chunk at this offset, which is at most the bytes already here."""
        piece = memoryview(chunk).cast("B")
        part, end = self._part(digest), offset + len(piece)
        most = self._sizes.get(digest, self.most_bytes)
        if end > most:
            raise InputError(f"file {digest[:12]}: bytes up to {end:,} were sent; it has at most {most:,}")
        with self._lock():
            if self._is_complete(digest):  # another process was faster
                return
            there = _size(part)
            if not 0 <= offset <= there:
                raise InputError(f"file {digest[:12]}: bytes from {offset:,} on were sent; expected {there:,} or less")
            try:
                if end - there > self._free:
                    raise OSError(ENOSPC, "")
                _write_at(part, offset, piece)
            except OSError as error:
                _delete(part)  # so that it does not fill the disk
                raise self._refusal(error, self._sizes.get(digest, end)) from error

    def finish(self, digest: str) -> Path:
        """The path of the complete file. One with another content is deleted."""
        part, path = self._part(digest), self._file(digest)
        with self._lock():
            if self._is_complete(digest):
                _delete(part)
                return Path(path)
            if not os.path.exists(part):
                raise InputError(f"file {digest[:12]} was not received; send it again")
            if _digest_of(part) != digest:
                _delete(part)
                raise InputError(f"file {digest[:12]} is damaged: its content has another SHA-256; send it again")
            try:
                _replace(part, path)
            except OSError as error:
                raise self._refusal(error, _size(part)) from error
            self._checked[digest] = _state(path)
        self._sizes.pop(digest, None)
        return Path(path)

    def path(self, digest: str) -> Path:
        """The path of a complete file."""
        _check_digest(digest)
        with self._lock():
            is_complete = self._is_complete(digest)
        if not is_complete:
            raise InputError(f"file {digest[:12]} is not complete in '{self.folder}'; send it again")
        return self.folder / digest

    def keep_only(self, digests: Collection[str]) -> None:
        """Deletes all other files, complete or not, to free the disk."""
        for digest in digests:
            _check_digest(digest)
        with self._lock():
            for name in os.listdir(self.folder):
                digest = name.removesuffix(_PART)
                if _DIGEST.fullmatch(digest) and digest not in digests:
                    _delete(self._file(name))

    def _part(self, digest: str) -> str:
        _check_digest(digest)
        return self._file(digest + _PART)

    def _file(self, name: str) -> str:
        return os.path.join(self.folder, name)

    def _is_complete(self, digest: str) -> bool:
        """Compares the content when it is first asked about, since SD cards lose bits; deletes it if it is damaged."""
        path = self._file(digest)
        try:
            state = _state(path)
            if self._checked.get(digest) == state:
                return True
            if _digest_of(path) == digest:
                self._checked[digest] = state
                return True
        except FileNotFoundError:
            return False
        _delete(path)
        return False

    @property
    def _free(self) -> int:
        system = os.statvfs(self.folder)
        return system.f_bavail * system.f_frsize

    def _refusal(self, error: OSError, needed: int) -> RunError:
        if error.errno not in (ENOSPC, EDQUOT):
            return RunError(f"cannot write into '{self.folder}': {error.strerror or error}")
        return RunError(
            f"the disk is full: '{self.folder}' needs {needed:,} bytes, and {self._free:,} are free; free some, or use "
            "a folder on another disk"
        )

    @contextmanager
    def _lock(self) -> Iterator[None]:
        """Keeps other processes and threads out of the folder."""
        try:
            handle = os.open(self.folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise self._refusal(error, 0) from error
        try:
            end = time.monotonic() + _LOCK_S
            while not _has_locked(handle):
                if time.monotonic() > end:
                    raise RunError(f"another process has locked '{self.folder}' for {_LOCK_S:g} s; end it")
                time.sleep(0.005)
            yield
        finally:
            os.close(handle)


def _has_locked(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0


def _delete(path: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(path)


def _state(path: str) -> tuple[int, int, int]:
    """Changes whenever the content does."""
    found = os.stat(path)
    return found.st_ino, found.st_size, found.st_mtime_ns


def _check_digest(digest: str) -> None:
    if not _DIGEST.fullmatch(digest):
        raise InputError(f"{digest[:80]!r} is no SHA-256; expected 64 digits of 0-9 and a-f")


def _digest_of(path: str) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _write_at(path: str, offset: int, piece: memoryview) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        while piece:
            written = os.pwrite(handle, piece, offset)
            piece, offset = piece[written:], offset + written
    finally:
        os.close(handle)


def _replace(part: str, path: str) -> None:
    """Renames the file once its content is on the disk, so that a power cut leaves no torn file of this name."""
    _flush(part)
    os.replace(part, path)
    _flush(os.path.dirname(path))


def _flush(path: str) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
