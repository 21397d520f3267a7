"""One end of a connection for `transport.py`, as a process of its own that imports one transport and nothing else.

    python benchmarks/transport_ends.py send|receive TRANSPORT PORT KEYS

Prints "ready", then reads phases as JSON lines and prints what each came to. A message has its number at both ends, and
between them the time at which it was sent: the clock is that of the machine, so both processes see the same one.
Every transport must bring the message into a slot that the receiver has set aside for it.
"""

from __future__ import annotations

import json
import os
import resource
import socket
import ssl
import struct
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

HOST = "127.0.0.1"
SENDER, RECEIVER = "pi1", "pi2"  # devices that have keys
CHANNELS = ("tensors", "control")
CHUNK = 64 << 10  # of a tensor in one message of Zenoh; larger and smaller ones are no faster
IN_FLIGHT = 4  # messages that ZeroMQ and Zenoh may hold
BUFFERS = 16  # that the sender fills in turns: ZeroMQ reads them while it sends
CONTROL_BYTES, CONTROL_PAUSE_S = 64, 0.001
_HEAD, _TAIL = struct.Struct("<QQ"), struct.Struct("<Q")  # number, nanoseconds; number


class Channel(Protocol):
    """Messages one way, in order."""

    def send(self, data: bytearray) -> None: ...

    def receive_into(self, slot: memoryview) -> None: ...


class Transport(Protocol):
    def listen(self, port: int) -> None: ...

    def accept(self) -> list[Channel]: ...

    def connect(self, port: int) -> list[Channel]: ...


class Stream:
    """A TCP connection, encrypted or not."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection

    def send(self, data: bytearray) -> None:
        self.connection.sendall(data)

    def receive_into(self, slot: memoryview) -> None:
        while slot:
            slot = slot[self.connection.recv_into(slot) :]


class Tcp:
    """A connection per channel, as this package has it."""

    def __init__(self, keys: Path, secure: bool) -> None:
        self.server: ssl.SSLContext | None = None
        self.client: ssl.SSLContext | None = None
        if secure:
            from edgewright.cluster.node import ciphers
            from edgewright.cluster.node.credentials import load_credentials

            ciphers.CPU_INFO = Path(os.environ.get("CPU_INFO", ciphers.CPU_INFO))
            self.server = load_credentials(keys / RECEIVER).server_context()
            self.client = load_credentials(keys / SENDER).client_context()

    def listen(self, port: int) -> None:
        self.listener = socket.create_server((HOST, port))

    def accept(self) -> list[Channel]:
        channels: list[Channel] = []
        for _ in CHANNELS:
            connection = self.listener.accept()[0]
            if self.server:
                connection = self.server.wrap_socket(connection, server_side=True)
            channels.append(Stream(connection))
        return channels

    def connect(self, port: int) -> list[Channel]:
        channels: list[Channel] = []
        for _ in CHANNELS:
            connection = socket.create_connection((HOST, port))
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            channels.append(Stream(self.client.wrap_socket(connection) if self.client else connection))
        return channels


class Queue:
    """A pair of ZeroMQ sockets."""

    def __init__(self, ends: object) -> None:
        self.ends = ends

    def send(self, data: bytearray) -> None:
        self.ends.send(data, copy=len(data) < CHUNK)

    def receive_into(self, slot: memoryview) -> None:
        self.ends.recv_into(slot)


class ZeroMq:
    """PUSH to PULL; CURVE is its encryption, with keys on both sides."""

    def __init__(self, keys: Path, secure: bool) -> None:
        import zmq

        self.zmq, self.context = zmq, zmq.Context()
        self.curve = keys / "curve.json" if secure else None

    def _socket(self, kind: int, is_server: bool) -> object:
        made = self.context.socket(kind)
        made.sndhwm = made.rcvhwm = IN_FLIGHT
        if self.curve:
            known = {name: value.encode() for name, value in json.loads(self.curve.read_text()).items()}
            made.curve_server = is_server
            made.curve_publickey, made.curve_secretkey = (known[key] for key in _curve_names(is_server))
            if not is_server:
                made.curve_serverkey = known["server_public"]
        return made

    def listen(self, port: int) -> None:
        if self.curve:
            from zmq.auth.thread import ThreadAuthenticator

            self.guard = ThreadAuthenticator(self.context)
            self.guard.start()
            self.guard.configure_curve(domain="*", location=str(self.curve.parent / "curve"))
        self.sockets = [self._socket(self.zmq.PULL, True) for _ in CHANNELS]
        for offset, each in enumerate(self.sockets):
            each.bind(f"tcp://{HOST}:{port + offset}")

    def accept(self) -> list[Channel]:
        return [Queue(each) for each in self.sockets]

    def connect(self, port: int) -> list[Channel]:
        made = [self._socket(self.zmq.PUSH, False) for _ in CHANNELS]
        for offset, each in enumerate(made):
            each.connect(f"tcp://{HOST}:{port + offset}")
        return [Queue(each) for each in made]


def _curve_names(is_server: bool) -> tuple[str, str]:
    side = "server" if is_server else "client"
    return f"{side}_public", f"{side}_secret"


class Publication:
    """Both sides of a key expression; a tensor is sent in chunks."""

    def __init__(self, publisher: object = None, subscriber: object = None) -> None:
        self.publisher, self.subscriber = publisher, subscriber

    def send(self, data: bytearray) -> None:
        if len(data) <= CHUNK:
            self.publisher.put(data)
            return
        view = memoryview(data)
        for start in range(0, len(data), CHUNK):
            self.publisher.put(bytes(view[start : start + CHUNK]))

    def receive_into(self, slot: memoryview) -> None:
        while slot:
            chunk = self.subscriber.recv().payload.to_bytes()
            slot[: len(chunk)] = chunk
            slot = slot[len(chunk) :]


class Zenoh:
    """Peer to peer: one session, explicit endpoints, no gossip, no multicast, control before tensors."""

    def __init__(self, keys: Path, secure: bool) -> None:
        import zenoh

        self.zenoh, self.keys, self.protocol = zenoh, keys, "tls" if secure else "tcp"

    def _open(self, side: str, port: int, device: str) -> None:
        config = self.zenoh.Config()
        settings = {
            "mode": "peer",
            "listen/endpoints": [],
            "connect/timeout_ms": -1,
            "scouting/multicast/enabled": False,
            "scouting/gossip/enabled": False,
            "transport/shared_memory/enabled": False,
            f"{side}/endpoints": [f"{self.protocol}/{HOST}:{port}"],
        }
        if self.protocol == "tls":
            files = {"root_ca_certificate": "ca.crt"}
            for use in ("listen", "connect"):
                files |= {f"{use}_certificate": "node.crt", f"{use}_private_key": "node.key"}
            paths = {name: str(self.keys / device / file) for name, file in files.items()}
            settings["transport/link/tls"] = {**paths, "enable_mtls": True, "verify_name_on_connect": False}
        for name, value in settings.items():
            config.insert_json5(name, json.dumps(value))
        self.session = self.zenoh.open(config)

    def listen(self, port: int) -> None:
        self._open("listen", port, RECEIVER)
        fifo = self.zenoh.handlers.FifoChannel(IN_FLIGHT * 16)
        self.subscribers = [self.session.declare_subscriber(name, fifo) for name in CHANNELS]

    def accept(self) -> list[Channel]:
        return [Publication(subscriber=each) for each in self.subscribers]

    def connect(self, port: int) -> list[Channel]:
        self._open("connect", port, SENDER)
        zenoh = self.zenoh
        priorities = (zenoh.Priority.DATA_LOW, zenoh.Priority.REAL_TIME)
        channels: list[Channel] = []
        for name, priority in zip(CHANNELS, priorities, strict=True):
            block = zenoh.CongestionControl.BLOCK
            express = name == "control"
            made = self.session.declare_publisher(name, congestion_control=block, priority=priority, express=express)
            while not made.matching_status.matching:  # puts that nobody subscribes to vanish
                time.sleep(0.01)
            channels.append(Publication(publisher=made))
        return channels


TRANSPORTS = {
    "tcp": (Tcp, False),
    "tcp-tls": (Tcp, True),
    "tcp-tls, AES in software": (Tcp, True),  # in the environments that `transport.py` gives them
    "tcp-tls, ChaCha20": (Tcp, True),
    "zeromq": (ZeroMq, False),
    "zeromq-curve": (ZeroMq, True),
    "zenoh": (Zenoh, False),
    "zenoh-tls": (Zenoh, True),
}


def send_phase(channels: list[Channel], size: int, count: int, pause: float, beside: bool) -> dict[str, float]:
    """Tensors (or what has their size), one after the other; with `beside`, small messages on the other channel."""
    stop = threading.Event()
    buffers = [bytearray(os.urandom(size)) for _ in range(BUFFERS)]
    before = cpu_seconds()
    if beside:
        threading.Thread(target=_send_control, args=(channels[1], stop)).start()
    for number in range(count):
        _send(channels[0], buffers[number % BUFFERS], number)
        if pause:
            time.sleep(pause)
    stop.set()
    return {"cpu_seconds": cpu_seconds() - before}


def _send(channel: Channel, buffer: bytearray, number: int) -> None:
    _TAIL.pack_into(buffer, len(buffer) - _TAIL.size, number)
    _HEAD.pack_into(buffer, 0, number, time.monotonic_ns())
    channel.send(buffer)


def _send_control(channel: Channel, stop: threading.Event) -> None:
    number = 0
    buffers = [bytearray(CONTROL_BYTES) for _ in range(BUFFERS)]
    while not stop.wait(CONTROL_PAUSE_S):
        _send(channel, buffers[number % BUFFERS], number)
        number += 1
    last = bytearray(CONTROL_BYTES)
    _HEAD.pack_into(last, 0, 1 << 63, 0)  # the end
    channel.send(last)


def receive_phase(channels: list[Channel], size: int, count: int, beside: bool) -> dict[str, object]:
    """Delays in microseconds, and the seconds from the first message sent to the last received."""
    control: list[float] = []
    before = cpu_seconds()
    reader = threading.Thread(target=lambda: control.extend(_receive_control(channels[1])))
    if beside:
        reader.start()
    slot = bytearray(size)
    delays: list[float] = []
    begin = end = 0
    for number in range(count):
        channels[0].receive_into(memoryview(slot))
        end = time.monotonic_ns()
        there, start = _HEAD.unpack_from(slot)
        assert there == number == _TAIL.unpack_from(slot, size - _TAIL.size)[0], (there, number)
        begin = begin or start
        delays.append((end - start) / 1e3)
    if beside:
        reader.join()
    return {
        "delays_us": delays,
        "control_us": control,
        "seconds": (end - begin) / 1e9,
        "cpu_seconds": cpu_seconds() - before,
    }


def _receive_control(channel: Channel) -> Iterator[float]:
    slot = bytearray(CONTROL_BYTES)
    while True:
        channel.receive_into(memoryview(slot))
        number, start = _HEAD.unpack_from(slot)
        if number == 1 << 63:
            return
        yield (time.monotonic_ns() - start) / 1e3


def cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def memory_bytes() -> dict[str, int]:
    lines = (line.split() for line in Path("/proc/self/status").read_text().splitlines())
    found = {words[0]: int(words[1]) << 10 for words in lines if words[0] in ("VmRSS:", "VmHWM:")}
    return {"rss": found["VmRSS:"], "peak_rss": found["VmHWM:"]}


def main() -> None:
    role, name, port, keys = sys.argv[1:]
    bare = memory_bytes()["rss"]
    kind, secure = TRANSPORTS[name]
    transport: Transport = kind(Path(keys), secure)
    if role == "receive":
        transport.listen(int(port))
        print("ready", flush=True)
        channels = transport.accept()
    else:
        channels = transport.connect(int(port))
        print("ready", flush=True)
    for line in sys.stdin:
        phase = json.loads(line)
        if role == "receive":
            del phase["pause"]
        result = receive_phase(channels, **phase) if role == "receive" else send_phase(channels, **phase)
        print(json.dumps({**result, "bare_rss": bare, **memory_bytes()}), flush=True)
    os._exit(0)  # nothing waits for peers that are gone


if __name__ == "__main__":
    main()
