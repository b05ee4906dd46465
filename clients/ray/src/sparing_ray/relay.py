"""The process between a coordinator and one shard on Ray: it passes packed messages on, and reads none of them.

Ray is in this process and not in the coordinator's, because Ray takes over signals, ends its process when the cluster
is gone, and reads messages of the cluster by a pickle that can run any code. This process has the cluster's token and
no other secret. It owns the actor that holds the shard, so that process and actor end together.
"""

import ipaddress
import os
import signal
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NoReturn

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from service.embedded.launch import end_with, ignore_signals
from service.ledger.ports.shards import LANES
from service.store.shards.messages import MessageLane, packed
from service.store.shards.worker import lanes_at
from sparing_ray.actor import MAX_RESTARTS, ShardActor, versions

START_S: Final = 60.0
"""The longest time in s until a new actor must reply, with the start of its process."""

JOIN_S: Final = 20.0
"""The longest wait in s for a first node that holds shards, since the node may be starting too."""


def main(descriptors: Sequence[tuple[int, int, int]], owner_pid: int) -> None:
    """Serve the coordinator at the other ends of these lanes with a new shard.

    The process ends when either has gone.
    """
    end_with(owner_pid, signal.SIGKILL)
    lanes = lanes_at(descriptors)
    address, *told = lanes["queries"].receive()
    connect(address)
    ignore_signals()  # after Ray has set its handlers
    actor = new_actor(told)
    lanes["queries"].send((True, os.getpid()))
    records = lanes["records"], actor.do_slowly.options(concurrency_group="records")
    accounts = lanes["accounts"], actor.do.options(concurrency_group="accounts")
    threading.Thread(target=pass_on, name="relay-records", args=records, daemon=True).start()
    threading.Thread(target=pass_on, name="relay-accounts", args=accounts, daemon=True).start()
    pass_on(lanes["queries"], actor.do.options(concurrency_group="queries"))


def connect(address: str) -> None:
    """Join the cluster at an address, through the cluster's node on this machine."""
    os.chdir(Path(__file__).parents[1])  # Ray's workers look for modules in the folder of who calls them
    ray.init(address, log_to_driver=False, configure_logging=False)


def new_actor(told: Sequence[object]) -> Any:  # noqa: ANN401 - Ray makes its class
    """An empty shard in a process of the cluster. Raises RuntimeError if that process has another version."""
    as_actor: Any = ray.remote  # its types know no lanes
    lanes = dict.fromkeys(LANES, 1)
    made = as_actor(concurrency_groups=lanes, max_restarts=MAX_RESTARTS, max_task_retries=0)(ShardActor)
    actor = made.options(scheduling_strategy="SPREAD").remote(packed(tuple(told)))
    if ray.get(actor.versions.remote(), timeout=START_S) != versions():
        raise RuntimeError("a node of the Ray cluster has another version")
    return actor


def pass_on(lane: MessageLane, called: Any) -> NoReturn:  # noqa: ANN401 - a method of an actor
    """Pass on one call after the other until the coordinator or the shard has gone, and then end this process."""
    try:
        while True:
            lane.send_packed(ray.get(called.remote(lane.receive_packed())))
    finally:
        os._exit(0)


def refusal(address: str, *, is_on_loopback: bool) -> str:
    """The reason, in one line, why the cluster at an address cannot hold shards; empty if it can."""
    try:
        connect(address)
    except ConnectionError:
        return f"no Ray cluster answers at SPARING_RAY_ADDRESS {address}, or it has another token or other certificates"
    except RuntimeError as error:  # of another version, or a cluster without a node here
        return (
            f"the Ray cluster at SPARING_RAY_ADDRESS {address} cannot be joined: {' '.join(str(error).split())[:300]}"
        )
    nodes, until = _nodes(), time.monotonic() + JOIN_S
    while not any(map(_holds_shards, nodes)) and time.monotonic() < until:
        time.sleep(0.5)
        nodes = _nodes()
    outside = sorted(node["NodeManagerAddress"] for node in nodes if not _is_loopback(node["NodeManagerAddress"]))
    if is_on_loopback and outside:
        return (
            f"the Ray cluster at SPARING_RAY_ADDRESS {address} listens on {outside[0]} too: start it with "
            "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER=0 and --node-ip-address=127.0.0.1, or use TLS and that address"
        )
    holding = [node for node in nodes if _holds_shards(node)]
    if not holding:
        return f"the Ray cluster at SPARING_RAY_ADDRESS {address} has no node with a CPU for shards"
    return next(filter(None, map(_difference, holding)), "")


def _nodes() -> list[dict[str, Any]]:
    listed: Any = ray.nodes  # without types
    return [node for node in listed() if node["Alive"]]


def _holds_shards(node: Mapping[str, Any]) -> bool:
    """Tell whether a node has a processor for an actor. A head node may have been configured to have none."""
    return bool(node["Resources"].get("CPU", 0) >= 1)


def _difference(node: Mapping[str, Any]) -> str:
    """The differences between a node's versions and this process', in one line; empty if there are none."""
    asked = ray.remote(num_cpus=0, max_retries=0)(versions)
    here = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
    try:
        there = ray.get(asked.options(scheduling_strategy=here).remote(), timeout=START_S)
    except (ray.exceptions.RayError, ImportError) as error:
        return f"the Ray node {node['NodeManagerAddress']} has no Sparing of this version: {type(error).__name__}"
    found, ours = (", ".join(map(" ".join, each.items())) for each in (there, versions()))
    if there == versions():
        return ""
    return f"the Ray node {node['NodeManagerAddress']} has {found}, and this process {ours}: they have to be equal"


def _is_loopback(address: str) -> bool:
    return ipaddress.ip_address(address).is_loopback


if __name__ == "__main__":
    sys.stdout.write(refusal(sys.argv[1], is_on_loopback=sys.argv[2] == "loopback"))
