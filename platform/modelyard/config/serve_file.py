"""The part of a Serve config that modelyard accepts, under Serve's names.

Serve ignores a key it does not know, so a typing error passes `serve deploy` in silence: here it is
a fault. The core does not import Ray, so keys and defaults are written down; a test compares them
with ray.serve.schema: every key of Serve is either a field here or in REFUSED with the reason.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import ConfigDict, Field

from modelyard.config.table import Frozen

_HTTP_ONLY: Final = "modelyard is reached through its HTTP ingress only: remove it"

NonNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class ServeModel(Frozen):
    """Strict, because Serve is in places: a number in quotes is a typing error in YAML anyway."""

    model_config = ConfigDict(strict=True)


class HttpOptions(ServeModel):
    host: str = "0.0.0.0"
    port: int = Field(default=8000, ge=0, le=65_535)
    root_path: str = ""
    request_timeout_s: float | None = None
    keep_alive_timeout_s: int = 90
    ssl_keyfile: str | None = None
    ssl_certfile: str | None = None
    ssl_keyfile_password: str | None = None
    ssl_ca_certs: str | None = None


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
    policy_function: str = "ray.serve.autoscaling_policy:default_autoscaling_policy"
    policy_kwargs: dict[str, Any] = Field(default_factory=dict)


class Autoscaling(ServeModel):
    min_replicas: int = Field(default=1, ge=0)
    initial_replicas: int | None = Field(default=None, ge=0)
    max_replicas: int = Field(default=1, ge=1)
    target_ongoing_requests: Positive | None = 2
    metrics_interval_s: Positive = 10.0
    look_back_period_s: Positive = 30.0
    smoothing_factor: Positive = 1.0
    upscale_smoothing_factor: Positive | None = None
    downscale_smoothing_factor: Positive | None = None
    upscaling_factor: Positive | None = None
    downscaling_factor: Positive | None = None
    downscale_delay_s: NonNegative = 600.0
    downscale_to_zero_delay_s: NonNegative | None = None
    upscale_delay_s: NonNegative = 30.0
    aggregation_function: Literal["mean", "max", "min"] = "mean"
    policy: Policy = Policy()


class Backpressure(ServeModel):
    status_code: Literal[503, 429] = 503
    retry_after_s: NonNegative | None = None


class Router(ServeModel):
    request_router_class: str = "ray.serve._private.request_router:PowerOfTwoChoicesRequestRouter"
    request_router_kwargs: dict[str, Any] = Field(default_factory=dict)
    request_routing_stats_period_s: Positive = 10
    request_routing_stats_timeout_s: Positive = 30
    initial_backoff_s: Positive = 0.025
    backoff_multiplier: Positive = 2
    max_backoff_s: Positive = 0.5


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
    request_router_config: Router = Router()
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
    }

    proxy_location: Literal["Disabled", "HeadOnly", "EveryNode"] = "EveryNode"
    http_options: HttpOptions = HttpOptions()
    logging_config: LoggingOptions | None = None
    tracing_config: TracingOptions | None = None
    target_capacity: float | None = Field(default=None, ge=0, le=100)
    applications: list[Application] = Field(min_length=1)
