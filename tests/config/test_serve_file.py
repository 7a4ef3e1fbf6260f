"""Our lists of keys against Ray's: an upgrade that adds a key fails here, by name."""

import math
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticUndefined
from ray.serve import config as ray_config
from ray.serve import schema as ray_schema

from modelyard.config import serve_file

PAIRS: list[tuple[type[BaseModel], type[BaseModel]]] = [
    (serve_file.ServeFile, ray_schema.ServeDeploySchema),
    (serve_file.HttpOptions, ray_schema.HTTPOptionsSchema),
    (serve_file.LoggingOptions, ray_schema.LoggingConfig),
    (serve_file.TracingOptions, ray_schema.TracingConfig),
    (serve_file.Application, ray_schema.ServeApplicationSchema),
    (serve_file.Deployment, ray_schema.DeploymentSchema),
    (serve_file.ActorOptions, ray_schema.RayActorOptionsSchema),
    (serve_file.Autoscaling, ray_config.AutoscalingConfig),
    (serve_file.Policy, ray_config.AutoscalingPolicy),
    (serve_file.Backpressure, ray_config.BackpressureConfig),
]


@pytest.mark.parametrize(("ours", "rays"), PAIRS)
def test_every_key_of_serve_is_accepted_or_refused_with_a_reason(
    ours: type[BaseModel], rays: type[BaseModel]
) -> None:
    refused: dict[str, str] = getattr(ours, "REFUSED", {})
    accepted = set(ours.model_fields)
    assert accepted <= set(rays.model_fields)
    assert set(rays.model_fields) <= accepted | set(refused)
    assert not accepted & set(refused)


@pytest.mark.parametrize(("ours", "rays"), PAIRS)
def test_our_defaults_are_serves(ours: type[BaseModel], rays: type[BaseModel]) -> None:
    for name, field in ours.model_fields.items():
        mine, its = _plain(field.default), _plain(rays.model_fields[name].default)
        if mine is not PydanticUndefined and its is not PydanticUndefined:
            assert mine == its, name


def test_the_defaults_that_the_rules_quote_are_the_controllers() -> None:
    from ray.serve._private.config import DeploymentConfig

    controllers = DeploymentConfig()
    ours = serve_file.Deployment(name="x")
    for name in (
        "max_ongoing_requests",
        "max_queued_requests",
        "graceful_shutdown_timeout_s",
        "graceful_shutdown_wait_loop_s",
        "health_check_period_s",
        "health_check_timeout_s",
        "rolling_update_percentage",
        "max_surge_percent",
    ):
        assert getattr(ours, name) == getattr(controllers, name), name


def _plain(default: Any) -> Any:
    """Models, enums and Serve's own mark for "not given", made comparable."""
    if isinstance(default, BaseModel) or type(default).__name__ == "DEFAULT":
        return PydanticUndefined
    return getattr(default, "value", default)


VALUES: list[Any] = [None, True, -1, 0, 1, 2, 0.5, 1e9, 503, math.inf, math.nan]
VALUES += ["", "x", "auto", "1", "INFO", "mean", "PACK", [], ["a"], {}, {"a": 1}, {"a": "b"}]
# Left to a rule of the check, or to Serve, which refuses these loudly at deploy time.
ELSEWHERE = {"import_path", "min_replicas", "initial_replicas"}
ELSEWHERE |= {"policy_function", "additional_log_standard_attrs"}
REQUIRED: dict[type[BaseModel], dict[str, Any]] = {
    serve_file.ServeFile: {"applications": [{"name": "x", "import_path": "a:b"}]},
    serve_file.Application: {"name": "x", "import_path": "a:b"},
    serve_file.Deployment: {"name": "x"},
    serve_file.Autoscaling: {"max_replicas": 2},
}


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")  # Serve's own
@pytest.mark.parametrize(("ours", "rays"), PAIRS)
def test_a_value_that_we_accept_serve_accepts(ours: type[BaseModel], rays: type[BaseModel]) -> None:
    for name in set(ours.model_fields) - ELSEWHERE:
        for value in VALUES:
            record = REQUIRED.get(ours, {}) | {name: value}
            try:
                ours.model_validate(record)
            except ValidationError:
                continue
            rays.model_validate(record)
