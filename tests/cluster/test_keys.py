"""Keys of a cluster: what is written, what is refused when it is loaded, and strangers over real sockets."""

from __future__ import annotations

import _ssl
import base64
import json
import os
import random
import re
import shutil
import socket
import ssl
import stat
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from edgewright.cli import main
from edgewright.cluster.node.credentials import COORDINATOR, Peer, load_credentials, peer_of
from edgewright.cluster.running.keys import make_keys, sign
from edgewright.errors import InputError

DEVICES = ("pi1", "pi2", "pi3")
WAIT_S = 10


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The keys of three devices, made where everybody may read new files."""
    folder = tmp_path_factory.mktemp("made") / "keys"
    before = os.umask(0)
    try:
        make_keys("home", DEVICES, "pi1", folder)
    finally:
        os.umask(before)
    return folder


@pytest.fixture
def keys(made: Path, tmp_path: Path) -> Path:
    """A copy that a test may spoil."""
    return Path(shutil.copytree(made, tmp_path / "keys"))


def refusal(folder: Path) -> str:
    with pytest.raises(InputError) as caught:
        load_credentials(folder)
    return str(caught.value)


def test_folders_of_devices(made):
    assert {path.name for path in made.iterdir()} == {"ca", *DEVICES}
    assert {path.name for path in (made / "ca").iterdir()} == {"ca.crt", "ca.key", "signing.key", ".gitignore"}
    expected = {"node.crt", "node.key", "ca.crt", "signing.pub", ".gitignore"}
    assert {path.name for path in (made / "pi1").iterdir()} == expected  # no node runs on the gateway
    expected |= {"README.md", "Containerfile", "edgewright-node.service"}
    assert {path.name for path in (made / "pi2").iterdir()} == expected
    assert "edgewright cluster node pi2/" in (made / "pi2" / "README.md").read_text()
    assert (
        "ExecStart=/opt/edgewright/bin/edgewright cluster node /etc/edgewright/pi2\n"
        in (made / "pi2" / "edgewright-node.service").read_text()
    )


def test_only_the_owner_can_read_keys(made):
    for path in made.rglob("*"):
        expected = 0o700 if path.is_dir() else 0o600
        assert stat.S_IMODE(path.stat().st_mode) == expected, path


def test_keys_are_never_readable_by_others_not_even_at_first(tmp_path, monkeypatch):
    """Modes are those that files are opened with."""
    modes: list[int] = []
    opened = os.open

    def watched(path: str, flags: int, mode: int = 0o777, **options: int) -> int:
        if flags & os.O_CREAT:
            modes.append(mode)
        return opened(path, flags, mode, **options)

    monkeypatch.setattr(os, "open", watched)
    monkeypatch.setattr(os, "chmod", lambda *_: pytest.fail("changed afterwards"))
    make_keys("home", ["a"], "a", tmp_path)
    assert len(modes) == 9 and set(modes) == {0o600}


def test_credentials_of_devices(made):
    gateway, other = load_credentials(made / "pi1"), load_credentials(made / "pi2")
    assert (gateway.name, gateway.is_coordinator) == ("pi1", True)
    assert (other.name, other.is_coordinator) == ("pi2", False)


def test_dates_suit_devices_whose_clock_is_wrong(made):
    for name in DEVICES:
        certificate = x509.load_pem_x509_certificate((made / name / "node.crt").read_bytes())
        assert certificate.not_valid_before_utc == datetime(1970, 1, 1, tzinfo=UTC)
        assert abs(certificate.not_valid_after_utc - datetime.now(UTC) - timedelta(days=3650)) < timedelta(minutes=5)


def test_openssl_agrees(made):
    """Another reader of certificates: the chain, both purposes, the names."""
    if not shutil.which("openssl"):
        pytest.skip("the command openssl is not installed")
    for purpose in ("sslclient", "sslserver"):
        verify = ["openssl", "verify", "-x509_strict", "-purpose", purpose, "-CAfile", "ca/ca.crt", "pi1/node.crt"]
        assert subprocess.run(verify, cwd=made, capture_output=True, text=True).stdout == "pi1/node.crt: OK\n"
    show = ["openssl", "x509", "-in", "pi1/node.crt", "-noout", "-ext", "subjectAltName"]
    assert f"DNS:pi1, URI:{COORDINATOR}" in subprocess.run(show, cwd=made, capture_output=True, text=True).stdout


def test_existing_keys_stay_and_a_new_device_gets_keys_of_the_same_ca(keys):
    before = {path: path.read_bytes() for path in keys.rglob("*") if path.is_file()}
    rows = make_keys("home", [*DEVICES, "pi4"], "pi1", keys)
    assert [(row.name, row.is_new) for row in rows] == [("pi1", False), ("pi2", False), ("pi3", False), ("pi4", True)]
    assert {path: path.read_bytes() for path in before} == before
    assert load_credentials(keys / "pi4").ca == load_credentials(keys / "pi1").ca


def remove_key(keys: Path) -> None:
    (keys / "pi1" / "node.key").unlink()


def swap_devices(keys: Path) -> None:
    (keys / "pi2").rename(keys / "pi")
    (keys / "pi3").rename(keys / "pi2")
    (keys / "pi").rename(keys / "pi3")


def take_other_ca(keys: Path) -> None:
    make_keys("home", DEVICES, "pi1", keys / "other")
    shutil.rmtree(keys / "pi2")
    (keys / "other" / "pi2").rename(keys / "pi2")


def break_ca(keys: Path) -> None:
    (keys / "ca" / "ca.crt").write_text("hello")


def mix_cas(keys: Path) -> None:
    make_keys("home", ["pi1"], "pi1", keys / "other")
    (keys / "other" / "ca" / "ca.key").replace(keys / "ca" / "ca.key")


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (remove_key, "node.key'; .*; or remove '.*pi1' and run `edgewright cluster keys` again"),
        (swap_devices, "pi2' has the keys of device 'pi3', not of 'pi2'; remove"),
        (take_other_ca, "pi2' has keys of another CA; remove"),
        (break_ca, "ca.crt' holds no certificate; restore the folder"),
        (mix_cas, "ca.key' is not the key of ca.crt; restore the folder"),
    ],
)
def test_existing_keys_that_do_not_fit_are_not_replaced(keys, spoil, message):
    spoil(keys)
    before = {path: path.read_bytes() for path in keys.rglob("*") if path.is_file()}
    with pytest.raises(InputError, match=message):
        make_keys("home", [*DEVICES, "pi4"], "pi1", keys)
    assert {path: path.read_bytes() for path in keys.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("other", DEVICES, "pi1"), "has the keys of cluster 'home', not of 'other'"),
        (("home", DEVICES, "pi2"), "'pi1' is not the gateway, but by its certificate it is the coordinator; remove"),
        (("home", ["../pi"], "../pi"), "'../pi' cannot stand in a certificate"),
        (("home", ["ca", "pi1"], "pi1"), "no device can have the name 'ca'"),
        (("home", ["pi1", "pi1"], "pi1"), "two devices have the same name"),
        (("home", DEVICES, "pi9"), "the gateway 'pi9' is none of the devices"),
        (("home", DEVICES, "pi1", 0), "cannot be valid for 0 days"),
    ],
)
def test_what_cannot_be_made(keys, arguments, message):
    cluster, devices, gateway, *days = arguments
    with pytest.raises(InputError, match=message):
        make_keys(cluster, devices, gateway, keys, *days)


def test_a_failure_leaves_no_half_written_folder(keys, monkeypatch):
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "rename", fail)
    with pytest.raises(InputError, match=r"cannot write '.*pi4': No space left"):
        make_keys("home", [*DEVICES, "pi4"], "pi1", keys)
    assert {path.name for path in keys.iterdir()} == {"ca", *DEVICES}


def test_signatures(made):
    credentials, content = load_credentials(made / "pi2"), b"library" * 1000
    signature = sign(made, content)
    assert credentials.is_signed(content, signature)
    for at in (0, len(content) - 1):
        changed = bytearray(content)
        changed[at] ^= 1
        assert not credentials.is_signed(bytes(changed), signature)
    for wrong in (signature[:-1], signature + b"x", b"", bytes([signature[0] ^ 1]) + signature[1:], bytes(64)):
        assert not credentials.is_signed(content, wrong)


def test_another_holder_cannot_sign(made, tmp_path):
    make_keys("home", ["pi1"], "pi1", tmp_path / "other")
    assert not load_credentials(made / "pi2").is_signed(b"library", sign(tmp_path / "other", b"library"))


@pytest.mark.parametrize("file", ["node.crt", "node.key", "ca.crt", "signing.pub"])
def test_missing_and_damaged_files_are_named(keys, file):
    (keys / "pi2" / file).write_bytes(b"\xff\x00 no key")
    assert f"pi2/{file}'" in refusal(keys / "pi2")
    (keys / "pi2" / file).unlink()
    assert refusal(keys / "pi2").startswith(f"there is no file '{keys}/pi2/{file}'; copy the whole folder")


def test_a_key_that_others_may_read_is_refused(keys):
    path = keys / "pi2" / "node.key"
    for mode in (0o640, 0o604, 0o602):
        path.chmod(mode)
        assert refusal(keys / "pi2") == f"others may use the key '{path}' (mode {mode:03o}); run: chmod 600 '{path}'"


def test_files_that_do_not_belong_together(keys, tmp_path):
    make_keys("home", DEVICES, "pi1", tmp_path / "other")
    shutil.copy(keys / "pi3" / "node.key", keys / "pi2" / "node.key")
    assert "pi2/node.key' is not the key of node.crt" in refusal(keys / "pi2")
    shutil.copy(tmp_path / "other" / "pi3" / "ca.crt", keys / "pi3" / "ca.crt")
    assert "pi3/node.crt' is a certificate of another CA than ca.crt" in refusal(keys / "pi3")


def damaged(file: bytes, rng: random.Random) -> bytes:
    """The file with a few bytes changed, of its text or of what the text stands for."""
    begin, text, end = re.fullmatch(rb"(-----BEGIN [A-Z ]+-----\n)(.*)(-----END [A-Z ]+-----\n)", file, re.S).groups()
    is_inside = rng.random() < 0.8
    content = bytearray(base64.b64decode(text) if is_inside else file)
    for _ in range(rng.choice((1, 1, 2, 5))):
        content[rng.randrange(len(content))] = rng.randrange(256)
    del content[rng.choice((len(content), len(content), rng.randrange(len(content)))) :]
    return begin + base64.encodebytes(content) + end if is_inside else bytes(content)


@pytest.mark.filterwarnings("ignore:Parsed a serial number")
@pytest.mark.parametrize("file", ["pi2/node.crt", "pi2/node.key", "pi2/ca.crt", "pi2/signing.pub"])
def test_damaged_files_of_a_device_are_refused_or_harmless(keys, file):
    """One that changes nothing that matters (a date, say) is refused by its signature."""
    sound, rng, refusals = (keys / file).read_bytes(), random.Random(file), 0
    for _ in range(300):
        (keys / file).write_bytes(damaged(sound, rng))
        try:
            credentials = load_credentials(keys / "pi2")
            credentials.server_context()
            refusals += not credentials.is_signed(b"library", sign(keys, b"library"))
        except InputError:
            refusals += 1
    assert refusals > 200


@pytest.mark.filterwarnings("ignore:Parsed a serial number")
@pytest.mark.parametrize("file", ["ca.crt", "ca.key", "signing.key"])
def test_a_damaged_ca_is_refused_or_harmless(keys, file):
    sound, rng, refusals = (keys / "ca" / file).read_bytes(), random.Random(file), 0
    for _ in range(100):
        (keys / "ca" / file).write_bytes(damaged(sound, rng))
        try:
            make_keys("home", DEVICES, "pi1", keys)
            refusals += not load_credentials(keys / "pi2").is_signed(b"library", sign(keys, b"library"))
        except InputError:
            refusals += 1
    assert refusals > 60


class Authority:
    """Issues any certificate that a test wants, by the CA of `keys` or by a device that plays one."""

    def __init__(self, certificate: Path, key: Path) -> None:
        self.certificate = x509.load_pem_x509_certificate(certificate.read_bytes())
        self.key = serialization.load_pem_private_key(key.read_bytes(), None)

    def issue(self, folder: Path, common_name: str, names: list[x509.GeneralName], days: int = 10) -> None:
        """A certificate of these names, and its key, in the folder."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, common_name)])
        builder = x509.CertificateBuilder(self.certificate.subject, subject, key.public_key(), 1)
        builder = builder.not_valid_before(datetime(1990, 1, 1)).add_extension(
            x509.SubjectAlternativeName(names), False
        )
        certificate = builder.not_valid_after(datetime.now(UTC) + timedelta(days=days)).sign(self.key, hashes.SHA256())
        chain = (certificate, self.certificate)  # as a device that plays a CA would send it
        pem = b"".join(each.public_bytes(serialization.Encoding.PEM) for each in chain)
        (folder / "node.crt").write_bytes(pem)
        private = (serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        (folder / "node.key").write_bytes(key.private_bytes(serialization.Encoding.PEM, *private))


def test_an_expired_certificate_is_named(keys):
    Authority(keys / "ca/ca.crt", keys / "ca/ca.key").issue(keys / "pi2", "pi2", [x509.DNSName("pi2")], days=-1)
    assert "pi2/node.crt' expired on " in refusal(keys / "pi2") and "clock" in refusal(keys / "pi2")


@pytest.mark.parametrize("names", [[], ["pi2", "pi3"]])
def test_a_certificate_names_one_device(keys, names):
    authority = Authority(keys / "ca/ca.crt", keys / "ca/ca.key")
    authority.issue(keys / "pi2", "pi2", [x509.RFC822Name("a@b.c"), *map(x509.DNSName, names)])
    assert f"names {len(names)} devices; expected one" in refusal(keys / "pi2")


class Served:
    """A server on loopback with the credentials of a device; it takes one connection and tells who came."""

    def __init__(self, folder: Path) -> None:
        self.context = load_credentials(folder).server_context()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.settimeout(WAIT_S)
        self.peer: Peer | None = None
        self.error: Exception | None = None
        self.received = b""
        self.thread = threading.Thread(target=self._take)

    def _take(self) -> None:
        try:
            raw, _ = self.listener.accept()
            raw.settimeout(WAIT_S)
            with self.context.wrap_socket(raw, server_side=True) as connection:
                self.peer, self.received = peer_of(connection), connection.recv(100)
                connection.sendall(b"secret")
        except Exception as error:
            self.error = error

    def __enter__(self) -> Served:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.thread.join(WAIT_S)
        self.listener.close()


def talk(context: ssl.SSLContext, server: Served, text: bytes = b"I am pi1") -> tuple[Peer | None, bytes]:
    """What the server is called, if the client asks for a certificate, and its answer."""
    with socket.create_connection(server.listener.getsockname(), WAIT_S) as raw, context.wrap_socket(raw) as connection:
        connection.sendall(text)
        return peer_of(connection) if connection.getpeercert() else None, connection.recv(100)


def refused(context: ssl.SSLContext, server: Served) -> None:
    """The client gets nothing, and the server never learns a word."""
    try:
        answer = talk(context, server)[1]
    except OSError:
        answer = b""
    server.thread.join(WAIT_S)
    assert answer == b"" and server.received == b"" and server.peer is None
    assert isinstance(server.error, ssl.SSLError), server.error


def test_devices_know_each_other(made):
    with Served(made / "pi2") as server:
        there, answer = talk(load_credentials(made / "pi1").client_context(), server)
    assert (there, answer) == (Peer("pi2", False), b"secret")
    assert server.peer == Peer("pi1", True)


def test_a_device_that_claims_the_name_of_another_keeps_its_own(made):
    with Served(made / "pi2") as server:
        talk(load_credentials(made / "pi3").client_context(), server, b"I am pi1, the coordinator")
    assert server.peer == Peer("pi3", False)


def anybody() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def test_without_a_certificate(made):
    with Served(made / "pi2") as server:
        refused(anybody(), server)


def test_with_a_certificate_of_another_ca(made, tmp_path):
    make_keys("home", DEVICES, "pi1", tmp_path)  # the same names
    context = anybody()
    context.load_cert_chain(tmp_path / "pi1" / "node.crt", tmp_path / "pi1" / "node.key")
    with Served(made / "pi2") as server:
        refused(context, server)
    with Served(tmp_path / "pi2") as server, pytest.raises(ssl.SSLCertVerificationError):
        talk(load_credentials(made / "pi1").client_context(), server)


def test_with_an_expired_certificate(made, tmp_path):
    names = [x509.DNSName("pi1"), x509.UniformResourceIdentifier(COORDINATOR)]
    Authority(made / "ca/ca.crt", made / "ca/ca.key").issue(tmp_path, "pi1", names, days=-1)
    context = anybody()
    context.load_cert_chain(tmp_path / "node.crt", tmp_path / "node.key")
    with Served(made / "pi2") as server:
        refused(context, server)


def test_a_device_cannot_issue_certificates(made, tmp_path):
    """pi3 signs a certificate by which it would be the coordinator, and sends its own along."""
    names = [x509.DNSName("pi1"), x509.UniformResourceIdentifier(COORDINATOR)]
    Authority(made / "pi3/node.crt", made / "pi3/node.key").issue(tmp_path, "pi1", names)
    context = anybody()
    context.load_cert_chain(tmp_path / "node.crt", tmp_path / "node.key")
    with Served(made / "pi2") as server:
        refused(context, server)


def test_older_tls_is_refused(made):
    context = load_credentials(made / "pi1").client_context()
    context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_2
    with Served(made / "pi2") as server:
        refused(context, server)


def test_plain_text_is_refused(made):
    with Served(made / "pi2") as server, socket.create_connection(server.listener.getsockname(), WAIT_S) as raw:
        raw.sendall(b"GET / HTTP/1.0\r\n\r\n")
        server.thread.join(WAIT_S)
        assert isinstance(server.error, ssl.SSLError) and server.peer is None


ONE_END = """
import socket, sys
from pathlib import Path
from edgewright.cluster.node import ciphers
from edgewright.cluster.node.credentials import load_credentials
keys, role, cpu, *port = sys.argv[1:]
ciphers.CPU_INFO = Path(cpu)
credentials = load_credentials(Path(keys))
if role == "server":
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    credentials.server_context().wrap_socket(listener.accept()[0], server_side=True)
else:
    print(credentials.client_context().wrap_socket(socket.create_connection(("127.0.0.1", int(port[0])))).cipher()[0])
"""


@pytest.mark.parametrize(
    ("server", "client", "cipher"),
    [
        ("flags : fpu aes sse", "Features : fp asimd aes", "TLS_AES_128_GCM_SHA256"),
        ("flags : fpu aes sse", "Features : fp asimd crc32", "TLS_CHACHA20_POLY1305_SHA256"),
        ("Features : fp asimd crc32", "flags : fpu aes sse", "TLS_CHACHA20_POLY1305_SHA256"),
    ],
)
def test_chacha20_is_used_if_either_end_lacks_instructions_for_aes(made, tmp_path, server, client, cipher):
    if not hasattr(_ssl, "__file__"):
        pytest.skip("this Python has OpenSSL inside, where its configuration cannot be reached")
    cpus = {"server": tmp_path / "server", "client": tmp_path / "client"}
    for side, text in (("server", server), ("client", client)):
        cpus[side].write_text(f"processor : 0\n{text}\n\n")
    start = [sys.executable, "-c", ONE_END]
    with subprocess.Popen([*start, made / "pi2", "server", cpus["server"]], stdout=subprocess.PIPE, text=True) as end:
        port = end.stdout.readline().strip()
        other = subprocess.run([*start, made / "pi1", "client", cpus["client"], port], capture_output=True, text=True)
        assert (other.stdout.strip(), other.stderr) == (cipher, "")


TEAM = """
name = "team"
[[device]]
name = "pi"
count = 2
rate = "2 GMAC/s"
switch = "switch"
bandwidth = "1 Gbit/s"
"""


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["cluster", "keys", *arguments])


def test_the_command_writes_keys_and_says_where_they_go(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("team.toml").write_text(TEAM)
    first = run("team.toml", "--days", "30")
    assert first.exit_code == 0, first.output
    assert "scp -r keys/pi2 pi2:" in first.output and "edgewright cluster node pi2/" in first.output
    assert len(re.findall(r"\bnew\b", first.output)) == 2
    Path("team.toml").write_text(TEAM.replace("count = 2", "count = 3"))
    answer = json.loads(run("team.toml", "--json").output)
    assert answer["cluster"] == "team" and answer["ca"] == "keys/ca"
    assert [(row["device"], row["new"], row["coordinator"]) for row in answer["devices"]] == [
        ("pi1", False, True),
        ("pi2", False, False),
        ("pi3", True, False),
    ]
    assert datetime.fromisoformat(answer["devices"][0]["valid_until"]) < datetime.now(UTC) + timedelta(days=31)


def test_the_command_refuses_in_one_sentence(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("team.toml").write_text(TEAM)
    Path("file").write_text("")
    for arguments, message in (
        (("missing.toml",), "missing.toml: cannot be read"),
        (("team.toml", "-o", "file"), "'.*file' is a file; give a folder with -o"),
        (("team.toml", "--days", "0"), "0 is not in the range"),
    ):
        result = run(*arguments)
        assert result.exit_code in (1, 2) and re.search(message, result.output), result.output
    monkeypatch.setitem(sys.modules, "cryptography", None)
    assert "keys are made with cryptography: pip install 'edgewright[cluster]'" in run("team.toml").output


def test_a_node_loads_neither_the_planner_nor_cryptography():
    """They are not installed on small devices, or take long to load there."""
    program = """
import sys
import edgewright.cluster.node.credentials, edgewright.cluster.node.store
print("|".join(sys.modules))
"""
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    heavy = {"pydantic", "click", "rich", "onnx", "ortools", "onnxruntime", "networkx", "cryptography", "numpy"}
    assert not heavy & set(loaded.strip().split("|"))


LEAN = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("pydantic", "rich", "onnx", "onnxruntime", "ortools", "networkx", "jinja2",
                                      "joblib", "tflite", "flatbuffers", "prometheus_client"):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Absent())
from edgewright.cli import main
main()
"""


def test_the_command_node_runs_where_the_planners_packages_are_not_installed(made, tmp_path):
    start = [sys.executable, "-c", LEAN, "cluster", "node"]
    done = subprocess.run([*start, str(tmp_path)], capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr.startswith("Error: there is no file '"), done.stderr
    arguments = [str(made / "pi2"), "--listen", "127.0.0.1:0", "--store", str(tmp_path / "store")]
    with subprocess.Popen([*start, *arguments], stdout=subprocess.PIPE, text=True) as node:
        assert node.stdout.readline().startswith("node 'pi2' listens at port ")
        node.terminate()
    assert node.returncode == 0
