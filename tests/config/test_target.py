from pathlib import Path
from typing import Any

import pytest
import yaml

from modelyard.config.target import Deployment, read_target
from modelyard.testing.in_memory import table_record


def target(tmp_path: Path, **top: Any) -> Deployment:
    record = {
        "applications": [
            {"name": "gen@1.0.0", "route_prefix": None},
            {
                "name": "ingress",
                "route_prefix": "/",
                "deployments": [{"name": "Ingress", "user_config": table_record()}],
            },
        ]
    }
    path = tmp_path / "x.serve.yaml"
    path.write_text(yaml.safe_dump(record | top))
    return read_target(path)


def test_the_apps_and_the_table_are_read(tmp_path: Path) -> None:
    deployment = target(tmp_path)
    assert deployment.apps == ("gen@1.0.0", "ingress")
    assert "chat" in deployment.table.routes


@pytest.mark.parametrize(
    ("http", "url"),
    [
        ({}, "http://127.0.0.1:8000"),
        ({"host": "127.0.0.1", "port": 9000}, "http://127.0.0.1:9000"),
        ({"host": "0.0.0.0"}, "http://127.0.0.1:8000"),
        ({"host": "::", "port": 1}, "http://127.0.0.1:1"),
        ({"host": "::1"}, "http://[::1]:8000"),
        ({"host": "example.org"}, "http://example.org:8000"),
    ],
)
def test_the_url_is_one_that_a_client_here_can_use(
    tmp_path: Path, http: dict[str, Any], url: str
) -> None:
    assert target(tmp_path, http_options=http).url == url


def test_the_configs_that_ship_can_be_read() -> None:
    for path in Path(__file__).parents[2].glob("configs/*.serve.yaml"):
        deployment = read_target(path)
        assert deployment.url == "http://127.0.0.1:8000"
        versions = {route.stable for route in deployment.table.routes.values()}
        assert versions <= set(deployment.apps)
