"""The bytes of a graph file; what they mean is left to the formats."""

from __future__ import annotations

from pathlib import Path

from ...errors import InputError

MOST_BYTES = 16 << 20  # the graph of a CNN with hundreds of layers takes about one of these MiB
_TRY = "give the path of an SDF3 XML file or of a graph in JSON"


def content(path: Path | str) -> bytes:
    """All of a file of acceptable size."""
    file = Path(path)
    try:
        if file.is_dir():
            raise InputError(f"'{file}' is a directory; {_TRY}")
        if file.exists() and not file.is_file():  # opening a pipe would wait for ever
            raise InputError(f"'{file}' is no regular file; {_TRY}")
        with file.open("rb") as stream:
            data = stream.read(MOST_BYTES + 1)
    except FileNotFoundError:
        raise InputError(f"there is no file '{file}'; {_TRY}") from None
    except (OSError, ValueError) as error:  # ValueError: a path with a NUL in it
        raise InputError(f"cannot read '{file}': {getattr(error, 'strerror', None) or error}") from None
    check_size(data, str(file))
    return data


def check_size(data: bytes, name: str) -> None:
    if len(data) > MOST_BYTES:
        raise InputError(
            f"'{name}' is larger than {MOST_BYTES >> 20} MiB, the most that is read; "
            "shorten its lists: 1,1,1 may be written 3*1"
        )
    if not data.strip():
        raise InputError(f"'{name}' is empty; {_TRY}")
