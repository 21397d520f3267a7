"""An Arduino library as one zip file, the same bytes on every machine."""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO
from zipfile import ZIP_STORED, ZipFile, ZipInfo

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
