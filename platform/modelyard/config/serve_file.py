"""The part of a Serve config that modelyard accepts, under Serve's names.

Serve ignores a key it does not know, so a typing error passes `serve deploy` in silence: here it is
a fault. The core does not import Ray, so keys and defaults are written down; a test compares them
with ray.serve.schema: every key of Serve is either a field here or in REFUSED with the reason.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import ConfigDict, Field

from modelyard.config.frozen import Frozen

_HTTP_ONLY: Final = "modelyard is reached through its HTTP ingress only: remove it"
_TLS_IN_FRONT: Final = "Serve's HAProxy speaks plain HTTP: remove it, and end TLS in front of it"

NonNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class ServeModel(Frozen):
    """Strict, because Serve is in places: a number in quotes is a typing error in YAML anyway."""

    model_config = ConfigDict(strict=True)


class HttpOptions(ServeModel):
    REFUSED: ClassVar[dict[str, str]] = {
        "root_path": 'the ingress answers on "/": remove it, and rewrite paths in a proxy in front',
        "ssl_keyfile": _TLS_IN_FRONT,
        "ssl_certfile": _TLS_IN_FRONT,
        "ssl_keyfile_password": _TLS_IN_FRONT,
        "ssl_ca_certs": _TLS_IN_FRONT,
    }

    host: str = "0.0.0.0"
    port: int = Field(default=8000, ge=1, le=65_535)
    request_timeout_s: Positive | None = None
    keep_alive_timeout_s: int = 90


class LoggingOptions(ServeModel):
    encoding: Literal["TEXT", "JSON"] = "TEXT"
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"] = "INFO"
    logs_dir: str | None = None
    enable_access_log: bool = True
    additional_log_standard_attrs: list[str] = Field(default_factory=list)


class TracingOptions(ServeModel):
    enabled: bool = False
    exporter_import_path: str = ""
    sampling_ratio: float = Field(default=0.01, ge=0, le=1)


class Policy(ServeModel):
    REFUSED: ClassVar[dict[str, str]] = {
        "policy_kwargs": "modelyard's policy takes none, and a replica would not scale: remove it"
    }

    policy_function: str = "ray.serve.autoscaling_policy:default_autoscaling_policy"


_NO_FACTOR: Final = (
    "modelyard's policy counts replicas, and a factor would undo what it holds: remove it"
)


class Autoscaling(ServeModel):
    REFUSED: ClassVar[dict[str, str]] = {
        "smoothing_factor": _NO_FACTOR,
        "upscale_smoothing_factor": _NO_FACTOR,
        "downscale_smoothing_factor": _NO_FACTOR,
        "upscaling_factor": _NO_FACTOR,
        "downscaling_factor": _NO_FACTOR,
    }

    min_replicas: int = Field(default=1, ge=0)
    initial_replicas: int | None = Field(default=None, ge=0)
    max_replicas: int = Field(default=1, ge=1)
    target_ongoing_requests: Positive | None = 2
    metrics_interval_s: Positive = 10.0
    look_back_period_s: Positive = 30.0
    downscale_delay_s: NonNegative = 600.0
    downscale_to_zero_delay_s: NonNegative | None = None
    upscale_delay_s: NonNegative = 30.0
    aggregation_function: Literal["mean", "max", "min"] = "mean"
    policy: Policy = Policy()


class Backpressure(ServeModel):
    status_code: Literal[503, 429] = 503
    retry_after_s: NonNegative | None = None


class ActorOptions(ServeModel):
    runtime_env: dict[str, Any] = Field(default_factory=dict)
    num_cpus: NonNegative | None = None
    num_gpus: NonNegative | None = None
    memory: NonNegative | None = None
    resources: dict[str, Any] = Field(default_factory=dict)
    accelerator_type: str | None = None
    label_selector: dict[str, str] | None = None
    fallback_strategy: list[dict[str, Any]] | None = None


class Deployment(ServeModel):
    REFUSED: ClassVar[dict[str, str]] = {
        "gang_scheduling_config": "a version is one engine per replica: remove it",
        "deployment_actors": "the shells start what they need: remove it",
        "request_router_config": "the shells set it in code, and a change restarts the app: "
        "remove it",
    }

    name: str
    num_replicas: Annotated[int, Field(gt=0)] | Literal["auto"] | None = None
    max_ongoing_requests: int = Field(default=5, gt=0)
    max_queued_requests: Literal[-1] | Annotated[int, Field(gt=0)] = -1
    backpressure_config: Backpressure = Backpressure()
    user_config: dict[str, Any] | None = None
    autoscaling_config: Autoscaling | None = None
    graceful_shutdown_wait_loop_s: NonNegative = 2
    graceful_shutdown_timeout_s: NonNegative = 20
    health_check_period_s: Positive = 10
    health_check_timeout_s: Positive = 30
    ray_actor_options: ActorOptions = ActorOptions()
    placement_group_bundles: list[dict[str, float]] = Field(default_factory=list)
    placement_group_strategy: Literal["PACK", "SPREAD", "STRICT_PACK", "STRICT_SPREAD"] = "PACK"
    placement_group_bundle_label_selector: list[dict[str, str]] = Field(
        default_factory=list, min_length=1
    )
    max_replicas_per_node: int = Field(default=100, ge=1, le=100)
    logging_config: LoggingOptions = LoggingOptions()
    rolling_update_percentage: float = Field(default=0.2, gt=0, le=1)
    max_surge_percent: int = Field(default=0, ge=0, le=100)


class Application(ServeModel):
    REFUSED: ClassVar[dict[str, str]] = {
        "host": "one address serves all apps: set http_options.host at the top",
        "port": "one address serves all apps: set http_options.port at the top",
        "autoscaling_policy": "Serve does not support it yet: name the policy in each "
        "deployment's autoscaling_config",
        "external_scaler_enabled": "modelyard's policy scales the replicas: remove it",
    }

    name: str = Field(min_length=1)
    route_prefix: str | None = "/"
    import_path: str
    runtime_env: dict[str, Any] = Field(default_factory=dict)
    args: dict[str, Any] = Field(default_factory=dict)
    deployments: list[Deployment] = Field(default_factory=list)
    logging_config: LoggingOptions | None = None


class ServeFile(ServeModel):
    REFUSED: ClassVar[dict[str, str]] = {
        "grpc_options": _HTTP_ONLY,
        "controller_options": "whoever starts Ray sets the controller's environment: remove it",
        "import_path": "one app at the top is Serve's old form: list it under applications",
        "target_capacity": "it scales every app at once, whatever its own numbers say: remove it",
    }

    # Not "Disabled": nobody could reach the ingress.
    proxy_location: Literal["HeadOnly", "EveryNode"] = "EveryNode"
    http_options: HttpOptions = HttpOptions()
    logging_config: LoggingOptions | None = None
    tracing_config: TracingOptions | None = None
    applications: list[Application] = Field(min_length=1)
