"""What every Ray process of a local platform finds in its environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster.local_environment import environment_of, ray_environment
from cluster.ports import LocalPorts
from modelyard.config.settings import Settings


def test_an_operators_key_is_no_replicas_business(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MODELYARD_API_KEY", "my_ops-1_x")
    made = environment_of(Settings(tmp_path, tmp_path / "s"), LocalPorts(), "r1", haproxy=False)
    assert "MODELYARD_API_KEY" not in made
    assert made["MODELYARD_RUN_ID"] == "r1"
    assert made["MODELYARD_HOME"] == str(tmp_path)


def test_every_ray_process_gets_token_mode_and_the_throughput_mode() -> None:
    plain = ray_environment(LocalPorts(), Path("/tmp/x"), haproxy=False)
    assert plain["RAY_AUTH_MODE"] == "token"
    assert plain["RAY_SERVE_THROUGHPUT_OPTIMIZED"] == "1"
    assert "RAY_SERVE_ENABLE_HA_PROXY" not in plain
    haproxy = ray_environment(LocalPorts(), Path("/tmp/x"), haproxy=True)
    assert haproxy["RAY_SERVE_ENABLE_HA_PROXY"] == "1"
    assert plain.items() <= haproxy.items()


def test_haproxys_socket_path_fits_its_limit() -> None:
    """97 characters, of which Serve adds a folder named after the node (56) and its slash."""
    environment = ray_environment(LocalPorts(), Path("/tmp/modelyard-01234567"), haproxy=True)
    for name in ("RAY_SERVE_HAPROXY_SOCKET_PATH", "RAY_SERVE_HAPROXY_METRICS_SOCKET_PATH"):
        assert len(environment[name]) + 57 <= 97
