import os
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from cluster.ports import LocalPorts, require_free
from modelyard.contract.errors import ConfigError


@pytest.fixture
def busy_port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_no_port_lies_in_rays_worker_range_or_is_used_twice() -> None:
    ports = LocalPorts().fixed().values()
    assert len(set(ports)) == len(ports)
    assert not set(ports) & set(range(10002, 20000))


def test_shifted_ports_all_move_by_the_same() -> None:
    before, after = LocalPorts().fixed(), LocalPorts().shifted(100).fixed()
    assert {name: port - before[name] for name, port in after.items()} == dict.fromkeys(before, 100)
    assert LocalPorts().shifted(0) == LocalPorts()


def test_free_ports_pass() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    require_free({"gcs": port})


def test_a_busy_port_is_named_with_its_holder_and_a_way_out(busy_port: int) -> None:
    with pytest.raises(ConfigError) as caught:
        require_free({"ray_client": busy_port})
    text = str(caught.value)
    assert f"port {busy_port} (ray client) is busy" in text
    assert f"process {os.getpid()}" in text
    assert "--port-offset" in text


def test_a_port_bound_on_every_address_is_busy() -> None:
    with socket.create_server(("0.0.0.0", 0)) as server, pytest.raises(ConfigError):
        require_free({"gcs": server.getsockname()[1]})


LISTEN = """
import socket, sys
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize(
    ("argument", "is_ray"),
    [
        ("/site-packages/ray/core/src/ray/gcs/gcs_server", True),
        ("ray::IDLE", True),
        ("raylet", True),
        ("/home/murray/array.py", False),
        ("--tray=1", False),
    ],
)
def test_another_ray_cluster_is_called_so_and_nothing_else_is(argument: str, is_ray: bool) -> None:
    command = [sys.executable, "-c", LISTEN, argument]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        with pytest.raises(ConfigError) as caught:
            require_free({"gcs": port})
        process.kill()
    assert f"process {process.pid}" in str(caught.value)
    assert ("another Ray cluster" in str(caught.value)) is is_ray


@pytest.mark.parametrize("offset", [14_000, -9_000, 4_000, -16_380, 40_000, 10**9, -11_000])
def test_an_offset_keeps_every_port_where_it_may_be(offset: int) -> None:
    with pytest.raises(ConfigError, match=f"a port offset of {offset} moves a port of Ray to"):
        LocalPorts().shifted(offset)


def test_a_port_for_two_things_is_refused() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(ConfigError, match=f"port {port} is both http and haproxy stats"):
        require_free({"http": port, "gcs": 0, "haproxy_stats": port})
