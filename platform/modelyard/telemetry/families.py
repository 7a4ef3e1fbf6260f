"""Every metric family of the platform: its name, labels and buckets. Nothing else may be exported.

A family is declared here once a process can fill it, and not before.
"""

from __future__ import annotations

from typing import Final

from modelyard.config.routes import Deadlines
from modelyard.telemetry.family import Family


def _edges(*seconds: float) -> tuple[float, ...]:
    """With every default deadline among them: whether one was met can then be read exactly."""
    deadlines = Deadlines()
    own = (deadlines.first_token_s, deadlines.idle_s, deadlines.total_s, deadlines.early_status_s)
    return tuple(sorted({float(edge) for edge in (*seconds, *own)}))


TTFT_EDGES: Final = _edges(
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.25, 0.35, 0.5, 0.75, 1, 1.5, 2.5, 5, 7.5, 30
)
WAIT_EDGES: Final = _edges(0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 7.5, 20, 30)
ITL_EDGES: Final = _edges(
    0.001, 0.0025, 0.005, 0.01, 0.015, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.25, 0.5, 1, 2.5, 5
)
DURATION_EDGES: Final = _edges(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 20, 30, 120)

_SERVED: Final = ("model", "version", "arm", "tier")

# One request: its ingress counts it when its books close.
REQUESTS: Final = Family(
    "requests",
    "counter",
    "Requests that ended, by the code of contract section 4; `ok` and `cancelled` among them.",
    ("model", "version", "arm", "route", "tier", "code"),
)
REJECTED: Final = Family(
    "requests_rejected",
    "counter",
    "Requests that ended before any output with a 4xx or 503, by the reason that was told.",
    ("model", "version", "tier", "code", "reason"),
)
QUEUE_WAIT: Final = Family(
    "queue_wait_seconds",
    "histogram",
    "How long a request that found no free slot waited for one, whatever came of it.",
    ("model", "version", "tier"),
    WAIT_EDGES,
)
DEGRADED: Final = Family(
    "requests_degraded",
    "counter",
    "Requests given less than was asked because too many waited: a lower output cap, or the "
    "fallback of their route.",
    ("model", "version", "tier", "kind"),
)
RETRIES: Final = Family(
    "retries",
    "counter",
    "Requests sent a second time because a replica died under them.",
    ("model", "version"),
)
FIRST_TOKEN: Final = Family(
    "time_to_first_token_seconds",
    "histogram",
    "From a request's arrival to its first item; of a unary answer, to the whole.",
    _SERVED,
    TTFT_EDGES,
)
INTER_TOKEN: Final = Family(
    "inter_token_latency_seconds",
    "histogram",
    "Between the tokens of a stream as the ingress relays it. A gap before n tokens counts as n.",
    _SERVED,
    ITL_EDGES,
)
DURATION: Final = Family(
    "request_duration_seconds",
    "histogram",
    "From a request's arrival to its last byte, for requests that reached a version.",
    (*_SERVED, "code"),
    DURATION_EDGES,
)
TOKENS: Final = Family(
    "tokens",
    "counter",
    "Tokens by direction: input, cached (those of input that the prefix cache held), output.",
    (*_SERVED, "direction"),
)
TENANT_TOKENS: Final = Family(
    "tenant_tokens",
    "counter",
    "Input and output tokens of the tenants that use most, and of all others as `other`.",
    ("tenant", "direction"),
)
# Quotas. `kind` is the class of models that a bucket is for: generator or small.
QUOTA_ADMITTED: Final = Family(
    "quota_admitted", "counter", "Requests that quotas let pass, in shadow mode all.", ("kind",)
)
QUOTA_REFUSED: Final = Family(
    "quota_refused", "counter", "Requests that quotas refused.", ("kind",)
)
QUOTA_WOULD_REFUSE: Final = Family(
    "quota_would_refuse",
    "counter",
    "Requests that quotas in shadow mode would have refused.",
    ("kind",),
)
QUOTA_SETTLED: Final = Family(
    "quota_settled_tokens",
    "counter",
    "Tokens that were charged to quotas when their requests ended.",
    ("kind", "direction"),
)
IN_FLIGHT: Final = Family(
    "requests_in_flight", "gauge", "Requests that an ingress works on.", ("replica", "version")
)
WAITING: Final = Family(
    "requests_waiting",
    "gauge",
    "Requests that wait in an ingress for a slot of a version, or of a tenant's own cell of it.",
    ("replica", "version", "priority"),
)

SHADOW_COPIES: Final = Family(
    "shadow_copies",
    "counter",
    "Copies of requests to the candidate of a rollout, by what became of them: answered, failed, "
    "or why there was no pair to compare.",
    ("version", "reason"),
)
JUDGED_ANSWERS: Final = Family(
    "judged_answers",
    "counter",
    "Answers of rollouts given to their judge: good, bad, or why there was no verdict.",
    ("model", "reason"),
)

# What a model replica is doing.
SEQUENCES_ACTIVE: Final = Family(
    "sequences_active", "gauge", "Sequences or inputs that the model computes now."
)
SEQUENCES_WAITING: Final = Family(
    "sequences_waiting", "gauge", "Sequences or inputs that wait inside the replica."
)
KV_CACHE: Final = Family("kv_cache_ratio", "gauge", "Used share of the KV cache, 0 to 1.")

# A replica's accelerators; absent where there are none.
DEVICE_MEMORY_USED: Final = Family(
    "device_memory_used_bytes", "gauge", "Memory of a device in use, whoever uses it.", ("device",)
)
DEVICE_MEMORY_ALLOCATED: Final = Family(
    "device_memory_allocated_bytes",
    "gauge",
    "Memory of a device that this replica's version declares for itself.",
    ("device",),
)
DEVICE_ECC_ERRORS: Final = Family(
    "device_ecc_errors",
    "counter",
    "ECC errors of a device since its driver was loaded: corrected, uncorrected.",
    ("device", "kind"),
)
DEVICE_XIDS: Final = Family(
    "device_xids", "counter", "XID errors of a device since this replica started.", ("device",)
)
DEVICE_LAST_XID: Final = Family(
    "device_last_xid", "gauge", "The number of a device's last XID error.", ("device",)
)
DEVICE_THROTTLED: Final = Family(
    "device_throttled",
    "gauge",
    "Whether a device is slowed down now, by the reason.",
    ("device", "reason"),
)
DEVICE_WANTS_REPAIR: Final = Family(
    "device_wants_repair",
    "gauge",
    "1 for a device with an XID of its own or an uncorrectable ECC error since its replica "
    "started: drain the node and repair it.",
    ("device",),
)

# The fleet, as the board has it.
REPLICA_PHASE: Final = Family(
    "replica_phase",
    "gauge",
    "1 for the phase that a replica is in.",
    ("version", "app", "replica", "phase"),
)
STARTUP_PHASE: Final = Family(
    "startup_phase_seconds",
    "gauge",
    "Seconds that a replica took for a phase of its start.",
    ("version", "app", "replica", "phase"),
)
REPLICAS_READY: Final = Family(
    "replicas_ready", "gauge", "Replicas of a version that may be sent requests.", ("version",)
)
SLOTS: Final = Family(
    "slots", "gauge", "Requests that the ready replicas of a version take at once.", ("version",)
)
REPLICAS_DESIRED: Final = Family(
    "replicas_desired",
    "gauge",
    "Replicas that the scaling policy last asked for, before Serve's delays and bounds.",
    ("version",),
)
REPLICA_RESTARTS: Final = Family(
    "replica_restarts",
    "counter",
    "Replicas that left without Serve having stopped them: start_failed, crashed, stalled, "
    "device_fault, drained.",
    ("version", "cause"),
)
ROLLOUT_WEIGHT: Final = Family(
    "rollout_weight_ratio",
    "gauge",
    "Share of a model's conversations that its canary version answers, 0 to 1.",
    ("model", "version"),
)
# Of control's own process.
ROLLOUT_PHASE: Final = Family(
    "rollout_phase",
    "gauge",
    "1 for the phase that a rollout is in.",
    ("model", "rollout", "phase"),
)
ROLLOUT_EVALUE: Final = Family(
    "rollout_gate_evalue",
    "gauge",
    "Evidence against a canary at a gate: an e-value, of quality a z score.",
    ("model", "rollout", "gate"),
)
ROLLOUT_FAILING: Final = Family(
    "rollout_gate_failing",
    "gauge",
    "1 for a gate or safety limit that a canary fails now.",
    ("model", "rollout", "gate"),
)
ROLLOUT_OUTCOMES: Final = Family(
    "rollout_outcomes",
    "counter",
    "Requests of rollouts by arm: ok, failed (server errors, timeouts), refused by the version (a "
    "4xx of its own), cancelled by their client; where outcomes are sampled, an estimate of all.",
    ("model", "arm", "kind"),
)
# The placement, where the config has one: an ingress reads Ray for it when it is scraped.
PLACEMENT_MISMATCHES: Final = Family(
    "placement_mismatches",
    "gauge",
    "Replicas and apps that are not as planned: at another place, with other devices, in no "
    "placement group of their own, missing, too many.",
    ("kind",),
)
PLACEMENT_PENDING: Final = Family(
    "placement_pending_seconds",
    "gauge",
    "How long a replica has waited for a place, the longest of an app, by the reason: Ray itself "
    "tells nobody.",
    ("app", "reason"),
)
PLACEMENT_PLACES: Final = Family(
    "placement_places",
    "gauge",
    "Devices and machines that the plan names, and those of them with a replica: planned, used.",
    ("kind",),
)
# Control's own, like those of rollouts.
SWAP_LOADS: Final = Family(
    "swap_loads", "counter", "Loads that control admitted into a swap area.", ("area",)
)
SWAP_EVICTIONS: Final = Family(
    "swap_evictions", "counter", "Models that made room for another in a swap area.", ("area",)
)
SWAP_WAITING: Final = Family(
    "swap_waiting", "gauge", "Models that wait for room in a swap area.", ("area",)
)
CONFIG_VALID: Final = Family(
    "config_valid", "gauge", "Whether the last table given to an ingress was good.", ("replica",)
)
CONFIG_INFO: Final = Family(
    "config_info", "gauge", "1 for the table an ingress runs on.", ("replica", "digest")
)
CONTROL_UP: Final = Family("control_up", "gauge", "Whether control was heard from lately.")
BOARD_UP: Final = Family("board_up_seconds", "gauge", "Seconds since the board last started.")
SCRAPE_MISSING: Final = Family(
    "scrape_missing",
    "gauge",
    "1 for a process that did not answer this scrape in time, 0 for one that did.",
    ("app", "replica"),
)

# Every process.
BUILD_INFO: Final = Family("build_info", "gauge", "1, with the release that runs.", ("release",))
SPANS_DROPPED: Final = Family(
    "spans_dropped",
    "counter",
    "Trace spans that were not exported.",
)

FAMILIES: Final = tuple(one for one in list(globals().values()) if isinstance(one, Family))
