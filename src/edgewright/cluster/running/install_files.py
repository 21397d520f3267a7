"""The files beside a device's keys that start its node: a systemd unit, a Containerfile, a README."""

from __future__ import annotations

UNIT, CONTAINERFILE, README = "edgewright-node.service", "Containerfile", "README.md"
_PACKAGES = "click numpy msgspec cryptography"  # all that a node needs; --no-deps leaves the planner's packages out

_UNIT = """\
# Starts the node of device {name} with the system. It expects the keys in /etc/edgewright/{name}, owned by the user
# edgewright, and the package in /opt/edgewright: see README.md.
[Unit]
Description=edgewright cluster node {name}
Wants=network-online.target
After=network-online.target
StartLimitIntervalSec=0

[Service]
User=edgewright
StateDirectory=edgewright
WorkingDirectory=/var/lib/edgewright
Environment=HOME=/var/lib/edgewright
ExecStart=/opt/edgewright/bin/edgewright cluster node /etc/edgewright/{name}
Restart=always
RestartSec=2
NoNewPrivileges=yes
PrivateTmp=yes
ProtectHome=yes
ProtectSystem=strict

[Install]
WantedBy=multi-user.target
"""

_CONTAINERFILE = """\
# The image holds no keys, so that it may lie in a registry:
#   podman build -t edgewright-node .
#   podman run -d --restart always --network host -v "$PWD:/keys:ro" -v edgewright-node:/root edgewright-node
FROM docker.io/library/python:3.12-slim
RUN pip install --no-cache-dir {packages} && pip install --no-cache-dir --no-deps edgewright
ENTRYPOINT ["edgewright", "cluster", "node", "/keys"]
"""

_README = """\
# Device {name} of cluster {cluster}

Copy this folder to {name}, keep it private, and run:

    edgewright cluster node {name}/

A node needs few packages: `pip install {packages}`, then `pip install --no-deps edgewright`.

To start it with the system, as root on {name}, in the folder above this one:

    useradd --system --home-dir /var/lib/edgewright edgewright
    python3 -m venv /opt/edgewright
    /opt/edgewright/bin/pip install {packages}
    /opt/edgewright/bin/pip install --no-deps edgewright
    mkdir -p /etc/edgewright && cp -r {name} /etc/edgewright/ && chown -R edgewright /etc/edgewright
    cp {name}/{unit} /etc/systemd/system/
    systemctl enable --now edgewright-node

To run it in a container instead, see `{containerfile}`.
"""


def install_files(cluster: str, device: str) -> dict[str, str]:
    """Their texts by file name."""
    return {
        UNIT: _UNIT.format(name=device),
        CONTAINERFILE: _CONTAINERFILE.format(packages=_PACKAGES),
        README: _README.format(
            name=device, cluster=cluster, packages=_PACKAGES, unit=UNIT, containerfile=CONTAINERFILE
        ),
    }
