"""The file store of a node: resumed, damaged, oversized, full, and used by two processes."""

from __future__ import annotations

import errno
import hashlib
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from edgewright.cluster.node.store import FileStore
from edgewright.errors import InputError, RunError

CONTENT = bytes(range(256)) * 40
DIGEST = hashlib.sha256(CONTENT).hexdigest()
EMPTY = hashlib.sha256(b"").hexdigest()


@pytest.fixture
def store(tmp_path: Path) -> FileStore:
    return FileStore(tmp_path / "files")


def send(store: FileStore, content: bytes = CONTENT, size: int = 1000) -> Path:
    digest = hashlib.sha256(content).hexdigest()
    for offset in range(0, len(content), size):
        store.append(digest, offset, content[offset : offset + size])
    return store.finish(digest)


def names(store: FileStore) -> set[str]:
    return {path.name for path in store.folder.iterdir()} - {".lock"}


def test_a_file_is_received_in_pieces(store):
    assert store.reserve({DIGEST: len(CONTENT)}) == {DIGEST: 0}
    path = send(store)
    assert path == store.path(DIGEST) and path.read_bytes() == CONTENT
    assert store.offsets([DIGEST, EMPTY]) == {EMPTY: 0}
    assert store.finish(DIGEST) == path  # again, since its answer may have been lost
    store.append(DIGEST, 0, b"late")
    assert path.read_bytes() == CONTENT and names(store) == {DIGEST}


def test_an_empty_file(store):
    store.append(EMPTY, 0, b"")
    assert store.finish(EMPTY).read_bytes() == b""


def test_it_is_resumed_by_another_process(store):
    store.append(DIGEST, 0, CONTENT[:3000])
    other = FileStore(store.folder)
    assert other.offsets([DIGEST]) == {DIGEST: 3000}
    other.append(DIGEST, 2500, CONTENT[2500:])  # some of it came twice
    assert other.finish(DIGEST).read_bytes() == CONTENT


def test_only_the_owner_can_read_it(tmp_path):
    before = os.umask(0)
    try:
        store = FileStore(tmp_path / "files")
        path = send(store)
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o600 and store.folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    "name", ["", "../" + "0" * 61, DIGEST[:-1], DIGEST + "\n", DIGEST.upper(), "/etc/passwd", DIGEST + "0", "g" * 64]
)
def test_names_are_digests(store, name):
    for use in (
        lambda: store.offsets([name]),
        lambda: store.append(name, 0, b"x"),
        lambda: store.finish(name),
        lambda: store.path(name),
        lambda: store.reserve({name: 1}),
        lambda: store.keep_only([name]),
    ):
        with pytest.raises(InputError, match="is no SHA-256; expected 64 digits"):
            use()
    assert names(store) == set()


def test_damaged_content_is_deleted(store):
    store.append(DIGEST, 0, CONTENT[:-1] + b"?")
    with pytest.raises(InputError, match="another SHA-256; send it again"):
        store.finish(DIGEST)
    assert names(store) == set() and store.offsets([DIGEST]) == {DIGEST: 0}
    with pytest.raises(InputError, match="was not received"):
        store.finish(DIGEST)
    assert send(store).read_bytes() == CONTENT


def test_a_file_that_loses_a_bit_on_the_disk_is_sent_again(store):
    path = send(store)
    path.write_bytes(CONTENT[:-1] + b"?")
    other = FileStore(store.folder)
    assert other.offsets([DIGEST]) == {DIGEST: 0}
    with pytest.raises(InputError, match="is not complete"):
        other.path(DIGEST)
    with pytest.raises(InputError, match="is not complete"):  # this one had checked it before it changed
        store.path(DIGEST)


def test_oversized_pieces_are_refused(store):
    store.reserve({DIGEST: len(CONTENT)})
    with pytest.raises(InputError, match="it has at most 10,240"):
        store.append(DIGEST, 0, CONTENT + b"x")
    small = FileStore(store.folder, most_bytes=100)
    with pytest.raises(InputError, match="it has at most 100"):
        small.append(EMPTY, 0, bytes(101))
    with pytest.raises(InputError, match="is too large; at most 100 are accepted"):
        small.reserve({DIGEST: 101})
    assert names(store) == set()


@pytest.mark.parametrize("offset", [-1, 1, 4001, 1 << 40])
def test_holes_are_refused(store, offset):
    there = 4000 if offset > 1 else 0
    store.append(DIGEST, 0, CONTENT[:there])
    with pytest.raises(InputError, match=r"sent; (expected|it has)"):
        store.append(DIGEST, offset, b"x")
    assert store.offsets([DIGEST]) == {DIGEST: there}


def test_other_files_are_deleted_to_free_the_disk(store):
    send(store)
    other = send(store, b"other")
    store.append(EMPTY, 0, b"part")
    (store.folder / "notes.txt").write_text("not ours")
    store.keep_only([other.name])
    assert names(store) == {other.name, "notes.txt"}


def test_a_file_that_does_not_fit_is_refused_before_it_is_sent(store, monkeypatch):
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_bavail=10, f_frsize=1000))
    with pytest.raises(RunError, match="needs 10,240 bytes, and 10,000 are free"):
        store.reserve({DIGEST: len(CONTENT)})
    with pytest.raises(RunError, match="needs 10,240 bytes, and 10,000 are free"):
        store.append(DIGEST, 0, CONTENT)
    store.append(DIGEST, 0, CONTENT[:9000])
    assert store.reserve({DIGEST: len(CONTENT)}) == {DIGEST: 9000}  # 1,240 are missing


def test_a_disk_that_fills_up_meanwhile(store, monkeypatch):
    """The part goes: it would keep the disk full."""
    store.reserve({DIGEST: len(CONTENT)})
    store.append(DIGEST, 0, CONTENT[:5000])

    def write_half(handle: int, data: memoryview, offset: int) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", write_half)
        with pytest.raises(RunError, match=r"the disk is full: .* needs 10,240 bytes, and [\d,]+ are free"):
            store.append(DIGEST, 5000, CONTENT[5000:])
    assert names(store) == set()
    assert send(store).read_bytes() == CONTENT


def test_a_real_disk_that_is_full(tmp_path):
    """A file system of 64 KiB in memory, where this process may mount one."""
    place = tmp_path / "small"
    place.mkdir()
    if not shutil.which("mount") or os.geteuid():
        pytest.skip("mounting a small file system needs root and the command mount")
    command = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)]
    if subprocess.run(command, capture_output=True).returncode:
        pytest.skip("no file system can be mounted here")
    try:
        store = FileStore(place / "files")
        content = random.Random(1).randbytes(100_000)
        with pytest.raises(RunError, match="the disk is full"):
            send(store, content, 10_000)
        assert names(store) == set()
        assert send(store).read_bytes() == CONTENT
    finally:
        subprocess.run(["umount", str(place)], check=True)


def test_two_processes_send_the_same_files(store):
    """Both send 20 files in pieces, resuming where the other is; all files are whole at the end, in either order."""
    program = """
import hashlib, random, sys
from pathlib import Path
from edgewright.cluster.node.store import FileStore
from edgewright.errors import InputError
store = FileStore(Path(sys.argv[1]))
for seed in range(20):
    content = random.Random(seed).randbytes(30_000)
    digest = hashlib.sha256(content).hexdigest()
    while missing := store.offsets([digest]):
        offset = missing[digest]
        try:
            if offset < len(content):
                store.append(digest, offset, content[offset : offset + 1000])
            else:
                store.finish(digest)
        except InputError as error:
            print(error)
"""
    command = [sys.executable, "-c", program, str(store.folder)]
    runs = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    outputs = [run.communicate(timeout=60)[0] for run in runs]
    assert [run.returncode for run in runs] == [0, 0] and "damaged" not in "".join(outputs)
    contents = [random.Random(seed).randbytes(30_000) for seed in range(20)]
    assert {path.read_bytes() for path in store.folder.iterdir() if path.name != ".lock"} == set(contents)
    assert names(store) == {hashlib.sha256(content).hexdigest() for content in contents}


def test_names_that_others_send_are_not_interned(store, monkeypatch):
    """Python 3.12 keeps interned text for ever."""
    interned = []
    monkeypatch.setattr(sys, "intern", lambda text: interned.append(text) or text)
    names = [hashlib.sha256(bytes([number])).hexdigest() for number in range(3)]
    store.reserve(dict.fromkeys(names, 5))
    store.append(names[0], 0, b"wrong")
    with pytest.raises(InputError):
        store.finish(names[0])
    store.append(names[1], 0, b"part")
    store.keep_only(names[:1])
    assert not [text for text in interned if any(name in text for name in names)]
    assert not (store.folder / f"{names[1]}.part").exists() and any(names[1] in text for text in interned)
