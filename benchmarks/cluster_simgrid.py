"""Transfers over links as SimGrid simulates them; reads cases as JSON, and stands alone so that any Python may run it.

    python benchmarks/cluster_simgrid.py < case.json

A case has hosts, links {name: [bytes/s, latency]}, transfers [[source, target, bytes, ready, [links]]] and `shares`:
whether transfers share a link fairly, as SimGrid has it, or one at a time holds all links on its way.
"""

import json
import sys

from simgrid import Comm, Engine, LinkInRoute, Semaphore, this_actor


def main() -> None:
    case = json.load(sys.stdin)
    # No TCP effects: shares of a link are equal and add up to its bandwidth.
    config = ["network/model:CM02", "network/TCP-gamma:0", "network/crosstraffic:0"]
    engine = Engine([sys.argv[0], *(f"--cfg={one}" for one in config), "--log=root.thres:critical"])
    zone = engine.netzone_root.add_netzone_full("cluster")
    hosts = {name: zone.add_host(name, 1e9) for name in case["hosts"]}
    links = {name: zone.add_link(name, rate).set_latency(latency) for name, (rate, latency) in case["links"].items()}
    routes = {(source, target): way for source, target, _, _, way in case["transfers"]}
    for (source, target), way in routes.items():
        zone.add_route(hosts[source], hosts[target], [LinkInRoute(links[name]) for name in way], False)
    zone.seal()
    ends: list[float] = [0.0] * len(case["transfers"])
    busy: set[str] = set()
    waiting: dict[int, Semaphore] = {}

    def serve() -> None:
        for number, gate in list(waiting.items()):
            way = case["transfers"][number][4]
            if not busy & set(way):
                busy.update(way)
                del waiting[number]
                gate.release()

    def send(number: int) -> None:
        source, target, size, ready, way = case["transfers"][number]
        this_actor.sleep_until(ready)
        if not case["shares"]:
            waiting[number] = gate = Semaphore(0)
            this_actor.yield_()  # whoever asks at this moment has asked
            serve()
            gate.acquire()
        Comm.sendto(hosts[source], hosts[target], size)
        ends[number] = Engine.clock
        if not case["shares"]:
            busy.difference_update(way)
            serve()

    for number, (source, *_) in enumerate(case["transfers"]):
        hosts[source].add_actor(f"transfer {number}", send, number)
    engine.run()
    json.dump(ends, sys.stdout)


if __name__ == "__main__":
    main()
