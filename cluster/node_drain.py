"""Take this node out of service: its replicas move away and finish, then it may be stopped.

`python -m cluster.node_drain` is what a preStop hook, or whoever repairs a node, runs. Ray is told
that the node goes; Serve then starts every replica anew elsewhere, takes the old one out of routing
when its successor runs, and lets it finish. Without room elsewhere the old ones are stopped in time
for the deadline. `ray start --block` does the same when it gets a SIGTERM itself, for as long as
RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S says: a shell in front of it (KubeRay's) gets it instead.

Not for the head: the controller and the cluster's own state live there.
"""

from __future__ import annotations

import argparse
import logging
import os
import socket
import sys
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any, Final, Protocol

from modelyard.contract.errors import ModelyardError

log = logging.getLogger("modelyard.node")

DEADLINE_S: Final = 120.0
POLL_S: Final = 0.5
# A head that moves is away for this long at most. Ray's own clients try for 40 s whatever is asked.
CONNECT_WITHIN_S: Final = 30.0
REPLICA: Final = "ServeReplica:"
# Serve looks at draining nodes each tick, and a replica it has just started here may not be in the
# table yet: once is not enough to see that nobody is left.
SEEN_EMPTY: Final = 3


class DrainFailed(ModelyardError):
    """The node was not drained. The text says why."""


class Nodes(Protocol):
    """What a drain needs of the cluster. Each may raise ConnectionError while it is away."""

    def find(self, name: str | None) -> str: ...
    def drain(self, node: str, deadline_s: float) -> None: ...
    def replicas(self, node: str) -> int: ...


def drain(
    nodes: Nodes,
    name: str | None,
    deadline_s: float,
    now: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> bool:
    """Whether every replica has left the node before the deadline. Raises DrainFailed.

    A cluster that does not answer meanwhile is asked again: its head may be moving too.
    """
    until = now() + deadline_s
    node = nodes.find(name)
    nodes.drain(node, deadline_s)
    log.warning("node %s drains, within %g s", node, deadline_s)
    empty = 0
    while now() < until:
        try:
            left = nodes.replicas(node)
        except ConnectionError as error:
            log.warning("the cluster does not answer: %s", error)
        else:
            empty = 0 if left else empty + 1
            if empty >= SEEN_EMPTY:
                log.warning("every replica has left node %s", node)
                return True
        sleep(POLL_S)
    log.error("node %s still has replicas after %g s: they will be cut off", node, deadline_s)
    return False


def require_listener(
    address: str,
    within_s: float,
    now: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Wait until something accepts a connection at host:port. Raises DrainFailed."""
    until = now() + within_s
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise DrainFailed(f"{address!r} is no address: give HOST:PORT")
    while True:
        left_s = max(until - now(), POLL_S)
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=left_s).close()
        except (OSError, OverflowError) as error:
            if now() + POLL_S >= until:
                raise DrainFailed(
                    f"no cluster answers at {address} within {within_s:g} s: {error}"
                ) from error
            sleep(POLL_S)
        else:
            return


class RayNodes:
    """Through the GCS and not as a driver: a draining node's raylet ends when it is idle, and would
    take a driver of its own along."""

    def __init__(self, address: str) -> None:
        """address: host:port of the GCS. Raises DrainFailed when nothing answers.

        Ray is imported here: it reads its environment when it is, and gives these no types.
        """
        os.environ.setdefault("RAY_AUTH_MODE", "token")
        state, raylet = (import_module(f"ray.{name}") for name in ("_private.state", "_raylet"))
        generated = [f"ray.core.generated.{name}_pb2" for name in ("autoscaler", "gcs")]
        self._autoscaler, self._gcs_types = map(import_module, generated)
        try:
            self._gcs: Any = raylet.GcsClient(address=address)
            options = raylet.GcsClientOptions.create(
                address, None, allow_cluster_id_nil=True, fetch_cluster_id_if_nil=True
            )
        except Exception as error:  # Ray's own types differ by what is wrong
            raise DrainFailed(f"no cluster answers at {address}: {error}") from error
        self._state: Any = state.GlobalState()
        self._state._initialize_global_state(options)

    def find(self, name: str | None) -> str:
        """The id of the live node of this name; without one, the node of this machine's address."""
        alive = [info for info in self._alive().values() if not info.is_head_node]
        if name is not None:
            found = [info for info in alive if info.node_name == name]
        else:
            here = import_module("ray.util").get_node_ip_address()
            found = [info for info in alive if info.node_manager_address == here]
        if len(found) != 1:
            what = f"named {name}" if name else "of this machine"
            raise DrainFailed(
                f"{len(found)} live worker nodes are {what}: start it with --node-name and name it"
            )
        return str(found[0].node_id.hex())

    def drain(self, node: str, deadline_s: float) -> None:
        # Not IDLE_TERMINATION, which a busy node refuses.
        accepted, why = self._gcs.drain_node(
            node,
            self._autoscaler.DrainNodeReason.Value("DRAIN_NODE_REASON_PREEMPTION"),
            "modelyard stops this node",
            int((time.time() + deadline_s) * 1000),
        )
        if not accepted:
            raise DrainFailed(f"Ray does not drain node {node}: {why}")

    def replicas(self, node: str) -> int:
        try:
            actors = self._state.actor_table(None).values()
        except Exception as error:  # as above; the caller asks again
            raise ConnectionError(str(error)) from error
        return sum(
            actor["ActorClassName"].startswith(REPLICA)
            and actor["Address"]["NodeID"] == node
            and actor["State"] != "DEAD"
            for actor in actors
        )

    def _alive(self) -> dict[Any, Any]:
        nodes = self._gcs.get_all_node_info(timeout=10)
        alive = self._gcs_types.GcsNodeInfo.GcsNodeState.ALIVE
        return {key: info for key, info in nodes.items() if info.state == alive}


def main() -> int:
    """0: every replica left. 1: not in time, or the node cannot be drained."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    parser = argparse.ArgumentParser(prog="python -m cluster.node_drain", description=__doc__)
    parser.add_argument("--address", default=os.environ.get("RAY_ADDRESS"), help="the GCS")
    parser.add_argument("--deadline-s", type=float, default=DEADLINE_S)
    parser.add_argument("--node-name", help="as given to `ray start`; left out, this machine's")
    options = parser.parse_args()
    if not options.address:
        parser.error("say where the cluster is: --address HOST:PORT, or RAY_ADDRESS")
    try:
        until = time.monotonic() + options.deadline_s
        require_listener(options.address, min(options.deadline_s, CONNECT_WITHIN_S))
        nodes = RayNodes(options.address)
        done = drain(nodes, options.node_name, until - time.monotonic())
    except DrainFailed as error:
        log.error("%s", error)
        return 1
    return 0 if done else 1


if __name__ == "__main__":
    sys.exit(main())
