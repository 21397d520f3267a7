"""A road from existing hardware: register maps in other formats become groups, and a lock that keeps every bit."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .fixed_map import FixedMap
from .full_lock import full_lock
from .group_source import group_source
from .rdl_reader import read_rdl
from .svd_reader import read_svd

READERS = {"svd": read_svd, "rdl": read_rdl}


def imported(path: Path, kind: str, wanted: Sequence[str] = ()) -> list[FixedMap]:
    """The register maps in a file of that kind ("svd", "rdl", "header"); `wanted` names peripherals."""
    if kind == "header":
        from .header_reader import read_header  # which needs libclang

        return read_header(path, wanted)
    return READERS[kind](path, wanted)


def import_files(maps: Sequence[FixedMap], origin: str, stem: str) -> dict[str, str]:
    """The texts of the header and of the lock file, by their names."""
    return {f"{stem}.h": group_source(maps, origin, stem), f"{stem}.lock.json": full_lock(maps)}
