"""Where the node of a device listens: a host and a port."""

from __future__ import annotations

from ...errors import InputError

PORT = 7447


def host_and_port(address: str) -> tuple[str, int]:
    """pi1, pi1:7447, 10.0.0.1:7447 or [fe80::1]:7447."""
    host, colon, port = address.rpartition(":")
    if not colon or "]" in port or (host.count(":") and not host.startswith("[")):
        host, port = address, str(PORT)
    if not host or not port.isdecimal() or not 0 <= int(port) < 1 << 16:
        raise InputError(f"'{address}' is no address; expected a host and perhaps a port, such as pi1.local:{PORT}")
    return host.strip("[]"), int(port)
