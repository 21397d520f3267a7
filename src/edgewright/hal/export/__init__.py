"""Designs as files that other tools read: SystemRDL, CMSIS-SVD, and what PeakRDL makes of the former."""

from __future__ import annotations

from collections.abc import Sequence

from ...errors import InputError
from ..design import Design
from .cmsis_header import cmsis_header
from .peakrdl import from_peakrdl
from .svd import svd
from .systemrdl import system_rdl


def exports(design: Design, name: str, rdl: Sequence[str] = (), cmsis: bool = False) -> dict[str, str | bytes]:
    """The texts of the files by their names; `rdl` asks PeakRDL for more (html, ipxact, regblock, cheader), `cmsis` for
    a header of structs and macros.
    """
    if "regblock" in rdl and any(space.views for space in design.layout.spaces.values()):
        raise InputError(
            "--rdl regblock: the lock file has registers with further addresses for writing some of their fields, "
            "which PeakRDL does not make. Use --relock to lay out without them, or leave regblock out."
        )
    text = system_rdl(design, name)
    header = {f"{name}_cmsis.h": cmsis_header(design, name)} if cmsis else {}
    return {f"{name}.rdl": text, f"{name}.svd": svd(design, name), **header, **from_peakrdl(text, rdl, name)}
