"""Draining a node: asked once, looked at until nobody is left, never past the deadline."""

from __future__ import annotations

import socket
from dataclasses import dataclass, field

import pytest

from cluster.node_drain import POLL_S, SEEN_EMPTY, DrainFailed, drain, require_listener


@dataclass
class Cluster:
    """One node. `left`: how many replicas each look finds; an error is raised; the last repeats."""

    left: list[int | ConnectionError]
    refuses: str = ""
    asked: list[tuple[str, float]] = field(default_factory=list)
    now: float = 0.0

    def find(self, name: str | None) -> str:
        if name == "unknown":
            raise DrainFailed("0 live worker nodes are named unknown")
        return "node-1"

    def drain(self, node: str, deadline_s: float) -> None:
        if self.refuses:
            raise DrainFailed(self.refuses)
        self.asked.append((node, deadline_s))

    def replicas(self, node: str) -> int:
        seen = self.left.pop(0) if len(self.left) > 1 else self.left[0]
        if isinstance(seen, ConnectionError):
            raise seen
        return seen

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def drained(self, name: str | None = None, deadline_s: float = 60.0) -> bool:
        return drain(self, name, deadline_s, lambda: self.now, self.sleep)


def test_it_waits_until_every_replica_has_left() -> None:
    cluster = Cluster([2, 2, 1, 0])
    assert cluster.drained()
    assert cluster.asked == [("node-1", 60.0)]
    assert cluster.now == (3 + SEEN_EMPTY - 1) * POLL_S


def test_a_moment_without_replicas_is_not_the_end() -> None:
    cluster = Cluster([0, 1, 0])
    assert cluster.drained()
    assert cluster.now == (2 + SEEN_EMPTY - 1) * POLL_S


def test_a_cluster_that_is_away_is_asked_again() -> None:
    cluster = Cluster([1, ConnectionError("no GCS"), ConnectionError("no GCS"), 0])
    assert cluster.drained()


def test_the_deadline_ends_it() -> None:
    cluster = Cluster([1])
    assert not cluster.drained(deadline_s=10)
    assert cluster.now == 10


@pytest.mark.parametrize("cluster", [Cluster([0]), Cluster([0], refuses="Ray does not drain it")])
def test_a_node_that_cannot_be_drained_is_an_error(cluster: Cluster) -> None:
    with pytest.raises(DrainFailed):
        cluster.drained("unknown" if not cluster.refuses else None)


def unused_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_a_cluster_that_is_not_there_is_not_waited_for_beyond_the_deadline() -> None:
    cluster = Cluster([0])
    address = f"127.0.0.1:{unused_port()}"
    with pytest.raises(DrainFailed, match=f"no cluster answers at {address} within 5 s"):
        require_listener(address, 5.0, lambda: cluster.now, cluster.sleep)
    assert 5.0 - 2 * POLL_S <= cluster.now <= 5.0


def test_a_cluster_that_comes_back_in_time_is_found() -> None:
    cluster, port = Cluster([0]), unused_port()
    with socket.socket() as listener:

        def comes_back(seconds: float) -> None:
            cluster.sleep(seconds)
            if cluster.now == 3 * POLL_S:
                listener.bind(("127.0.0.1", port))
                listener.listen()

        require_listener(f"127.0.0.1:{port}", 5.0, lambda: cluster.now, comes_back)
    assert cluster.now == 3 * POLL_S


@pytest.mark.parametrize("address", ["head", "head:", ":6379", "head:six"])
def test_an_address_without_host_and_port_is_refused(address: str) -> None:
    with pytest.raises(DrainFailed, match="give HOST:PORT"):
        require_listener(address, 5.0)
