"""`edgewright cluster keys`: creates the keys of a cluster's devices and says where to copy them."""

from __future__ import annotations

from pathlib import Path

from rich.table import Table

from ..cluster.description import read_cluster
from ..cluster.running.keys import CA, DeviceKeys, make_keys
from .common import console, print_json, shown, table


def write_keys(file: Path, output: Path, days: int, as_json: bool) -> None:
    cluster = read_cluster(file)
    made = make_keys(cluster.name, [device.name for device in cluster.devices], cluster.gateway, output, days)
    if as_json:
        print_json({"cluster": cluster.name, "ca": str(output / CA), "devices": [_keys_to_dict(keys) for keys in made]})
        return
    console.print(_keys_table(cluster.name, output, made))
    device = next(keys for keys in made if not keys.is_coordinator)  # a cluster has at least two devices
    console.print(
        f"Copy the folders to their devices, such as: scp -r {shown(device.folder)} {shown(device.name)}:\n"
        f"Start the node there: edgewright cluster node {shown(device.name)}/\n"
        f"The gateway {shown(cluster.gateway)} keeps all of {shown(output)}, and `edgewright cluster run` signs there. "
        f"Keep {shown(output / CA)} private: whoever has it can make devices execute any code.",
        soft_wrap=True,
    )


def _keys_table(cluster: str, folder: Path, made: tuple[DeviceKeys, ...]) -> Table:
    shows = table(f"Keys of cluster {shown(cluster)}", "Folder", "Copy to", "Role", "Valid until", "")
    shows.add_row(shown(folder / CA), "stays here", "CA and signing key", "–", "")
    for keys in made:
        place = "stays here" if keys.is_coordinator else shown(keys.name)
        role = "coordinator" if keys.is_coordinator else "device"
        state = "new" if keys.is_new else "unchanged"
        shows.add_row(shown(keys.folder), place, role, f"{keys.valid_until:%Y-%m-%d}", state)
    return shows


def _keys_to_dict(keys: DeviceKeys) -> dict[str, object]:
    return {
        "device": keys.name,
        "folder": str(keys.folder),
        "coordinator": keys.is_coordinator,
        "new": keys.is_new,
        "valid_until": keys.valid_until.isoformat(),
    }
