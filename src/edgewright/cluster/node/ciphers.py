"""The cipher of TLS 1.3: AES-GCM where the processor has instructions for AES, else ChaCha20-Poly1305.

Without those instructions, as on a Raspberry Pi 4, AES is several times slower (RFC 8439, appendix B). Python cannot
order the ciphers of TLS 1.3 (before 3.15), so OpenSSL reads the order from a configuration file.
"""

from __future__ import annotations

import ctypes
import os
import ssl
from contextlib import suppress
from functools import cache
from pathlib import Path

CPU_INFO = Path("/proc/cpuinfo")
AES, CHACHA = "TLS_AES_128_GCM_SHA256", "TLS_CHACHA20_POLY1305_SHA256"
# A server follows a client that has ChaCha20 first, and its own order otherwise (SSL_CTX_set_options(3)).
OPTIONS = ssl.OP_CIPHER_SERVER_PREFERENCE | 1 << 21  # SSL_OP_PRIORITIZE_CHACHA, which Python has no name for


@cache
def prefer_fast_cipher() -> None:
    """For all contexts that this process makes from now on. Without OpenSSL as a shared library, its order stays."""
    order = f"{AES}:{CHACHA}" if has_aes() else f"{CHACHA}:{AES}"
    text = f"openssl_conf = a\n[a]\nssl_conf = b\n[b]\nsystem_default = c\n[c]\nCiphersuites = {order}\n"
    with suppress(AttributeError, ImportError, OSError):
        import _ssl

        load = ctypes.CDLL(_ssl.__file__).CONF_modules_load_file
        load.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_ulong]
        handle = os.memfd_create("openssl.cnf")
        try:
            os.write(handle, text.encode())
            load(f"/proc/self/fd/{handle}".encode(), None, 0)
        finally:
            os.close(handle)


def has_aes() -> bool:
    """Whether the processor has instructions for AES; true where that is unknown."""
    with suppress(OSError):
        lines = [line.split() for line in CPU_INFO.read_text().splitlines()]
        features = [line for line in lines if line and line[0] in ("flags", "Features")]  # x86, Arm
        return not features or "aes" in features[0]
    return True
