"""The shipped config is fine, and for each rule one wrong config is told so, at its line."""

import copy
import json
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cluster.ports import LocalPorts
from deployments import vllm_engine
from modelyard.artifacts.manifest import Device, Limits, Manifest, Warmup, read_manifest
from modelyard.artifacts.store import resolve as resolve_address
from modelyard.config.check import RULES, check_document
from modelyard.config.document import parse_document
from modelyard.config.faults import Fault, Severity
from modelyard.config.rollout import Gates
from modelyard.config.rules.environment import RESERVED, RESERVED_PREFIXES
from modelyard.config.rules.rollouts import samples_for
from modelyard.config.rules.safety import RAY_PORTS
from modelyard.contract.operations import Kind
from modelyard.testing.manifests import a_manifest

TEXT = (Path(__file__).parents[2] / "configs" / "local.serve.yaml").read_text()
MODELS = {
    "smollm2-135m-instruct": Kind.GENERATOR,
    "all-minilm-l6-v2": Kind.EMBEDDER,
    "support-intent": Kind.CLASSIFIER,
    "minilm-reranker": Kind.RERANKER,
}
INGRESS = "applications.0.deployments.0"
GENERATOR = "applications.2.deployments.0"
EMBEDDER = "applications.3.deployments.0"
GENERATOR_ARTIFACT = "artifact: file://~/.modelyard/models/smollm2-135m-instruct/1.0.0"


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The four starter models' manifests, without their weights."""
    home = tmp_path_factory.mktemp("models")
    for name, kind in MODELS.items():
        output = {"max_output_tokens": 1024} if kind is Kind.GENERATOR else {}
        limits = Limits(max_context_tokens=4096, drain_s=60, **output)
        golden = Warmup(golden_sha256="0" * 64)
        put_manifest(home, a_manifest(name=name, kind=kind, limits=limits, warmup=golden))
    generator = read_manifest(home / "smollm2-135m-instruct" / "1.0.0").model_copy
    two = Device(accelerators=2, min_memory_gb=80)
    put_manifest(home, generator(update={"name": "of-two-gpus", "device": two}))
    put_manifest(home, generator(update={"name": "slow", "measured": {"output_tokens_per_s": 16}}))
    put_manifest(home, generator(update={"name": "untested", "warmup": Warmup()}))
    long = Limits(max_context_tokens=4096, max_output_tokens=1024, drain_s=100)
    put_manifest(home, generator(update={"name": "long", "limits": long}))
    return home


def put_manifest(models: Path, manifest: Manifest) -> None:
    folder = models / manifest.name / manifest.version
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "manifest.json").write_bytes(manifest.canonical())


def resolve(uri: str, models: Path) -> Path:
    if not uri.startswith("file://~/.modelyard/models/"):
        # The rest is the business of tests/artifacts/test_store.py.
        return resolve_address(uri)
    return models / uri.removeprefix("file://~/.modelyard/models/")


def check(text: str, models: Path) -> list[Fault]:
    document = parse_document(text, "local.serve.yaml")
    return list(check_document(document, partial(resolve, models=models)).faults)


@dataclass(frozen=True)
class Wrong:
    """`old` becomes `new` in the shipped file; the fault is at `path`, on the line with `mark`."""

    old: str
    new: str
    path: str
    advice: str
    mark: str = ""
    value: Any = None
    severity: Severity = Severity.ERROR
    also: tuple[str, str] = ("", "")  # a second change, without which the first is no mistake

    @property
    def text(self) -> str:
        assert TEXT.count(self.old) == 1
        return TEXT.replace(self.old, self.new).replace(*self.also)

    def line(self, text: str) -> int:
        lines = text.split("\n")
        marked = [number for number, line in enumerate(lines, 1) if (self.mark or self.new) in line]
        assert len(marked) == 1, f"the mark must be on one line, not on {marked}"
        return marked[0]


SCALING = """    autoscaling_config:
      min_replicas: 1
      max_replicas: 1  # raise it where there is room: each replica holds the whole model
      target_ongoing_requests: 24
      metrics_interval_s: 1
      # Name it always: this dict replaces the one in the code, policy and all.
      policy: {policy_function: "cluster.scaling_policy:QueuedPlusOngoing"}
"""
SECOND_INGRESS = """- {name: second, route_prefix: /, import_path: deployments.ingress:app}
- name: all-minilm-l6-v2@1.0.0
"""
ROUTES = f"{INGRESS}.user_config.routes"
ASSISTANT = f"{ROUTES}.support-assistant"
STABLE = "          stable: smollm2-135m-instruct@1.0.0\n"
ROLLOUT = f"{ASSISTANT}.rollout"


def rollout_line(plan: str) -> str:
    """The assistant's stable version, a canary whose app is not there, and a plan."""
    return (
        f"{STABLE}          canary: smollm2-135m-instruct@1.1.0\n"
        f"          rollout: {{{plan}}}  # a plan\n"
    )


TIERS = "      tiers: {paid: {weight: 4}}\n"
AREAS = f"{INGRESS}.user_config.swap_areas"


def swap_areas(**areas: str) -> str:
    """The tiers' line, and areas of 10 GB after it, each on a line of its own."""
    lines = "".join(
        f"        {name}: {{memory_gb: 10, models: {{{models}}}}}\n"
        for name, models in areas.items()
    )
    return f"{TIERS}      swap_areas:\n{lines}"


WRONG = {
    "a swap area with a model that has no app": Wrong(
        TIERS,
        swap_areas(d1="gone@1.0.0: 4"),
        f"{AREAS}.d1.models.gone@1.0.0",
        "no app of this file has that name: plan again",
        mark="gone@1.0.0: 4",
        value=4,
    ),
    "a swap area with a model that is always loaded": Wrong(
        TIERS,
        swap_areas(d1="support-intent@1.0.0: 4"),
        f"{AREAS}.d1.models.support-intent@1.0.0",
        "give support-intent@1.0.0 min_replicas 0 and max_replicas 1",
        mark="support-intent@1.0.0: 4",
        value=4,
    ),
    "a model in two swap areas": Wrong(
        TIERS,
        swap_areas(d1="gone@1.0.0: 4", d2="gone@1.0.0: 5"),
        f"{AREAS}.d2.models.gone@1.0.0",
        "the area d1 has it too: keep it in one of them",
        mark="gone@1.0.0: 5",
        value=5,
    ),
    "a rollout of a model in a swap area": Wrong(
        STABLE,
        rollout_line("id: r-1"),
        ROLLOUT,
        "it keeps smollm2-135m-instruct@1.0.0 loaded, which is in the swap area d1",
        mark="# a plan",
        also=(TIERS, swap_areas(d1="smollm2-135m-instruct@1.0.0: 4")),
    ),
    "a replica of two bundles": Wrong(
        old="ray_actor_options: {num_cpus: 1}",
        new="ray_actor_options: {num_cpus: 1}\n"
        "    placement_group_bundles: [{CPU: 1}, {GPU: 1}]  # two",
        mark="# two",
        path=f"{GENERATOR}.placement_group_bundles.1",
        advice="a replica is one process and sees the devices of its first bundle alone",
    ),
    "a replica that asks for more than its bundle": Wrong(
        old="ray_actor_options: {num_cpus: 1}",
        new="ray_actor_options: {num_cpus: 1, num_gpus: 2}\n"
        "    placement_group_bundles: [{CPU: 1, GPU: 1}]  # one",
        mark="# one",
        path=f"{GENERATOR}.placement_group_bundles.0",
        advice="has 1 GPU, and ray_actor_options ask for 2: write that here too",
    ),
    "replicas counted by node, with bundles": Wrong(
        old="ray_actor_options: {num_cpus: 1}",
        new="ray_actor_options: {num_cpus: 1}\n    placement_group_bundles: [{CPU: 1}]\n"
        "    max_replicas_per_node: 1",
        mark="max_replicas_per_node",
        path=f"{GENERATOR}.max_replicas_per_node",
        value=1,
        advice="Serve refuses it together with placement_group_bundles: remove it",
    ),
    "a label selector without a bundle": Wrong(
        old="ray_actor_options: {num_cpus: 1}",
        new="ray_actor_options: {num_cpus: 1}\n"
        "    placement_group_bundle_label_selector: [{modelyard/place: box-0}]",
        mark="bundle_label_selector",
        path=f"{GENERATOR}.placement_group_bundle_label_selector",
        advice="has 1 entries for 0 placement_group_bundles: write one for each bundle",
    ),
    "a redeploy that stops the good replica first": Wrong(
        "max_surge_percent: 100  # a redeploy starts",
        "max_surge_percent: 0  # a redeploy starts",
        "applications.2.deployments.0.max_surge_percent",
        "before the new one has passed its self-test: set 100",
        value=0,
        severity=Severity.WARNING,
    ),
    "control under another name": Wrong(
        "- name: control\n",
        "- name: kontrol\n",
        "applications.1.name",
        "the ingresses look for control there: write `name: control`",
        value="kontrol",
        mark="- name: kontrol",
    ),
    "two replicas of control": Wrong(
        "num_replicas: 1  # exactly one",
        "num_replicas: 3",
        "applications.1.deployments.0.num_replicas",
        "control is single: write 1",
        value=3,
    ),
    "control that starts before its forerunner has stopped": Wrong(
        "num_replicas: 1  # exactly one",
        "max_surge_percent: 50",
        "applications.1.deployments.0.max_surge_percent",
        "control must stop before its successor starts: remove it",
        value=50,
    ),
    "control without the table": Wrong(
        "    user_config: *table\n",
        "",
        "applications.1.deployments.0.user_config",
        "must be the ingress's table: write `&table` there and `*table` here",
        mark="- name: Control",
    ),
    "control's state where it is lost": Wrong(
        "args: {state_path: ~/.modelyard/control.sqlite}",
        "args: {state_path: /tmp/control.sqlite}",
        "applications.1.args.state_path",
        "what is under /tmp is lost when the machine restarts",
        value="/tmp/control.sqlite",
    ),
    "a state that is no path": Wrong(
        "args: {state_path: ~/.modelyard/control.sqlite}",
        "args: {state_path: control.sqlite}",
        "applications.1.args.state_path",
        "String should match pattern",
        value="control.sqlite",
    ),
    "an unknown Serve key": Wrong(
        "max_ongoing_requests: 40",
        "max_ongoing_request: 40",
        f"{GENERATOR}.max_ongoing_request",
        "unknown key: did you mean max_ongoing_requests?",
        value=40,
    ),
    "a key of Serve that modelyard refuses": Wrong(
        "http_options: {",
        "grpc_options: {port: 9000}\nhttp_options: {",
        "grpc_options",
        "modelyard is reached through its HTTP ingress only: remove it",
        mark="grpc_options",
    ),
    "a key of the wrong type": Wrong(
        "num_replicas: 2\n    max_ongoing_requests: 1000",
        "num_replicas: many\n    max_ongoing_requests: 1000",
        f"{INGRESS}.num_replicas",
        "Input should be a valid integer",
        mark="num_replicas: many",
        value="many",
    ),
    "an unknown table key": Wrong(
        "deadlines: {first_token_s: 10, idle_s: 15, total_s: 60}",
        "deadlines: {first_token: 10, idle_s: 15, total_s: 60}",
        f"{INGRESS}.user_config.routes.support-assistant.deadlines.first_token",
        "unknown key: did you mean first_token_s?",
        value=10,
    ),
    "an unknown key of many": Wrong(
        "default_max_output_tokens: 256, max_queued_requests: 100}",
        "default_max_output_tokens: 256, max_waiting: 100}",
        f"{ASSISTANT}.limits.max_waiting",
        "unknown key: remove it, or use one of max_output_tokens, default_max_output_tokens, "
        "max_queued_requests, max_queued_tokens",
        mark="max_waiting",
        value=100,
    ),
    "a queue that holds nothing": Wrong(
        "max_queued_requests: 100",
        "max_queued_requests: 0",
        f"{ASSISTANT}.limits.max_queued_requests",
        "Input should be greater than 0",
        value=0,
    ),
    "a queue that holds no request of the largest size": Wrong(
        "max_queued_requests: 100",
        "max_queued_tokens: 512",
        f"{ASSISTANT}.limits.max_queued_tokens",
        "a request for max_output_tokens 512 could never wait: set a multiple of that",
        value=512,
    ),
    "a cap that caps nothing": Wrong(
        STABLE,
        STABLE + "          overload: {cap_output_tokens: 512}\n",
        f"{ASSISTANT}.overload.cap_output_tokens",
        "not below limits.max_output_tokens 512, so it caps nothing: lower it",
        mark="overload:",
        value=512,
    ),
    "a cap of what has no output": Wrong(
        "support-intent: {stable: support-intent@1.0.0}",
        "support-intent: {stable: support-intent@1.0.0, overload: {cap_output_tokens: 16}}",
        f"{ROUTES}.support-intent.overload.cap_output_tokens",
        "support-intent@1.0.0 is a classifier, with no output to cap: remove it",
        value=16,
    ),
    "a threshold of no cap": Wrong(
        STABLE,
        STABLE + "          overload: {cap_at_percent: 80}\n",
        f"{ASSISTANT}.overload",
        "cap_at_percent is of no use without cap_output_tokens: add it",
        mark="overload:",
    ),
    "a threshold above all": Wrong(
        STABLE,
        STABLE + "          overload: {cap_output_tokens: 64, cap_at_percent: 150}\n",
        f"{ASSISTANT}.overload.cap_at_percent",
        "Input should be less than or equal to 100",
        mark="overload:",
        value=150,
    ),
    "an order that there is not": Wrong(
        STABLE,
        STABLE + "          overload: {order: fifo}\n",
        f"{ASSISTANT}.overload.order",
        "Input should be 'deadline' or 'shortest'",
        mark="overload:",
        value="fifo",
    ),
    "an order by a length that does not differ": Wrong(
        "support-intent: {stable: support-intent@1.0.0}",
        "support-intent: {stable: support-intent@1.0.0, overload: {order: shortest}}",
        f"{ROUTES}.support-intent.overload.order",
        "support-intent@1.0.0 is a classifier, and only generators' answers differ in length: "
        "remove it",
        value="shortest",
    ),
    "two orders of one queue": Wrong(
        "        support-embed: {",
        "        assistant: {stable: smollm2-135m-instruct@1.0.0, overload: {order: shortest}, "
        "limits: {max_output_tokens: 512}}\n        support-embed: {",
        f"{ROUTES}.assistant.overload.order",
        "another alias of smollm2-135m-instruct@1.0.0 has `order: deadline` and `age_cap_s: 2`, "
        "and a version has one queue: write the same in both",
        mark="        assistant:",
        value="shortest",
    ),
    "a fallback that leads nowhere": Wrong(
        STABLE,
        STABLE + "          overload: {fallback: smollm2-90m-instruct@1.0.0}\n",
        f"{ASSISTANT}.overload.fallback",
        "no app of this file has that name: did you mean smollm2-135m-instruct@1.0.0?",
        mark="overload:",
        value="smollm2-90m-instruct@1.0.0",
    ),
    "a fallback of another kind": Wrong(
        STABLE,
        STABLE + "          overload: {fallback: support-intent@1.0.0}\n",
        f"{ASSISTANT}.overload.fallback",
        "its kind is classifier, that of smollm2-135m-instruct@1.0.0 is generator",
        mark="overload:",
        value="support-intent@1.0.0",
    ),
    "a fallback that is the stable version": Wrong(
        STABLE,
        STABLE + "          overload: {fallback: smollm2-135m-instruct@1.0.0}\n",
        ASSISTANT,
        "overload.fallback 'smollm2-135m-instruct@1.0.0' is the stable version: name another",
        mark="support-assistant:",
    ),
    "a tier that no tenant has": Wrong(
        "tiers: {paid: {weight: 4}}",
        "tiers: {piad: {weight: 4}}",
        f"{INGRESS}.user_config.tiers.piad",
        "no tenant has this tier: did you mean paid?",
        severity=Severity.WARNING,
    ),
    "a tenant whose tier is misspelt": Wrong(
        "demo: {tier: paid,",
        "demo: {tier: payd,",
        f"{INGRESS}.user_config.tenants.demo.tier",
        "not in tiers, so its weight is 1: did you mean paid?",
        value="payd",
        severity=Severity.WARNING,
    ),
    "a weight of nothing": Wrong(
        "tiers: {paid: {weight: 4}}",
        "tiers: {paid: {weight: 0}}",
        f"{INGRESS}.user_config.tiers.paid.weight",
        "Input should be greater than or equal to 0.01",
        value=0,
    ),
    "no table": Wrong(
        "    user_config: &table\n      schema: modelyard/table/v1\n",
        "    x-table: &table\n      schema: modelyard/table/v1\n",
        f"{INGRESS}.user_config",
        "required and missing: the ingress takes the table here",
        mark="- name: Ingress",
    ),
    "an alias that leads nowhere": Wrong(
        "support-embed: {stable: all-minilm-l6-v2@1.0.0}",
        "support-embed: {stable: all-minilm-l6-v2@1.0.1}",
        f"{INGRESS}.user_config.routes.support-embed.stable",
        "no app of this file has that name: did you mean all-minilm-l6-v2@1.0.0?",
        value="all-minilm-l6-v2@1.0.1",
    ),
    "a canary that leads nowhere": Wrong(
        STABLE,
        STABLE + "          canary: smollm2-135m-instruct@1.1.0\n",
        f"{ASSISTANT}.canary",
        "no app of this file has that name: did you mean smollm2-135m-instruct@1.0.0?",
        mark="          canary: smollm2-135m-instruct@1.1.0",
        value="smollm2-135m-instruct@1.1.0",
    ),
    "a canary of another kind": Wrong(
        STABLE,
        STABLE + "          canary: support-intent@1.0.0\n",
        f"{ASSISTANT}.canary",
        "its kind is classifier, that of smollm2-135m-instruct@1.0.0 is generator",
        mark="          canary: support-intent@1.0.0",
        value="support-intent@1.0.0",
    ),
    "two rollouts of one id": Wrong(
        "support-rerank: {stable: minilm-reranker@1.0.0}",
        "support-rerank: {stable: minilm-reranker@1.0.0, canary: x@1, rollout: {id: r-1}}",
        f"{ROUTES}.support-rerank.rollout.id",
        "the rollout of support-assistant has this id too: give each its own",
        value="r-1",
        also=(STABLE, rollout_line("id: r-1")),
    ),
    "a rollout that nobody meets": Wrong(
        STABLE,
        rollout_line("id: r-1, tenants: [nightly]"),
        f"{ROLLOUT}.tenants",
        "no tenant of these may use support-assistant and has the arm canary",
        mark="# a plan",
        severity=Severity.WARNING,
    ),
    "a canary that no tenant has the arm for": Wrong(
        STABLE,
        rollout_line("id: r-1"),
        ROLLOUT,
        "no tenant may use support-assistant and has the arm canary",
        mark="# a plan",
        severity=Severity.WARNING,
        also=('models: ["*"]}', 'models: ["*"], arms: [stable]}'),
    ),
    "a step that says nothing": Wrong(
        STABLE,
        rollout_line("id: r-1, min_samples: 50"),
        f"{ROLLOUT}.min_samples",
        "50 requests say nothing about 0.5 points of errors: set at least 200",
        mark="# a plan",
        value=50,
        severity=Severity.WARNING,
    ),
    "a rollout of one step that compares nothing": Wrong(
        STABLE,
        rollout_line("id: r-1, steps_percent: [100]"),
        f"{ROLLOUT}.steps_percent",
        "at 100 % nobody is left to compare with: add a step below it",
        mark="# a plan",
        severity=Severity.WARNING,
    ),
    "a rollout without a gate": Wrong(
        STABLE,
        rollout_line("id: r-1, gates: {errors: null, ttft: null, e2e: null, tokens: null}"),
        f"{ROLLOUT}.gates",
        "every gate is off, so nothing is compared: leave one on",
        mark="# a plan",
        severity=Severity.WARNING,
    ),
    "a step shorter than an answer": Wrong(
        STABLE,
        rollout_line("id: r-1, hold_s: 30"),
        f"{ROLLOUT}.hold_s",
        "a step of 30 s may end before its slowest requests: set at least deadlines.total_s, 60",
        mark="# a plan",
        value=30,
        severity=Severity.WARNING,
    ),
    "a margin of quality that so few judgements cannot show": Wrong(
        STABLE,
        rollout_line("id: r-1, gates: {quality: {judgements: 100}}"),
        f"{ROLLOUT}.gates.quality.judgements",
        "an equal canary would often be held; set at least 248",
        mark="# a plan",
        value=100,
        severity=Severity.WARNING,
    ),
    "a margin of quality that no canary could show": Wrong(
        STABLE,
        rollout_line("id: r-1, gates: {quality: {judgements: 30}}"),
        f"{ROLLOUT}.gates.quality.judgements",
        "not even a canary whose every answer is as good could pass; set at least 35",
        mark="# a plan",
        value=30,
    ),
    "a judge that there is not": Wrong(
        STABLE,
        rollout_line("id: r-1, judge: {model: support-asistant}"),
        f"{ROLLOUT}.judge.model",
        "no route has this name: did you mean support-assistant?",
        mark="# a plan",
        value="support-asistant",
    ),
    "a judge of its own answers": Wrong(
        STABLE,
        rollout_line("id: r-1, judge: {model: support-assistant}"),
        f"{ROLLOUT}.judge.model",
        "a model would judge its own answers: name another",
        mark="# a plan",
        value="support-assistant",
    ),
    "a judge that does not write": Wrong(
        STABLE,
        rollout_line("id: r-1, judge: {model: support-intent}"),
        f"{ROLLOUT}.judge.model",
        "support-intent@1.0.0 is a classifier, and a judge writes: name another",
        mark="# a plan",
        value="support-intent",
    ),
    "a judge that may read nothing": Wrong(
        STABLE,
        rollout_line("id: r-1, gates: {quality: {}}, judge: {url: 'http://judge'}"),
        f"{ROLLOUT}.judge",
        "no tenant of support-assistant agreed, so it would read nothing: set `judged: true`",
        mark="# a plan",
        severity=Severity.WARNING,
    ),
    "a judge that no gate listens to": Wrong(
        STABLE,
        rollout_line("id: r-1, judge: {url: 'http://judge'}"),
        f"{ROLLOUT}.judge",
        "no gate looks at what it says: add gates.quality",
        mark="# a plan",
        severity=Severity.WARNING,
        also=('priority: interactive, models: ["*"]}', 'judged: true, models: ["*"]}'),
    ),
    "a failover of another kind": Wrong(
        STABLE,
        STABLE + "          constraints: [{failover: all-minilm-l6-v2@1.0.0}]\n",
        f"{ASSISTANT}.constraints.0.failover",
        "its kind is embedder",
        mark="constraints: [",
        value="all-minilm-l6-v2@1.0.0",
    ),
    "a dedicated cell without an app": Wrong(
        STABLE,
        STABLE + "          constraints: [{tenants: [demo], cell: b}]\n",
        f"{ASSISTANT}.constraints.0.cell",
        "no app of this file is named smollm2-135m-instruct@1.0.0--b: add it, or drop the cell",
        mark="constraints: [",
        value="b",
    ),
    "a model that no alias uses": Wrong(
        "support-intent: {stable: support-intent@1.0.0}",
        "support-intent: {stable: all-minilm-l6-v2@1.0.0}",
        "applications.4.name",
        "no alias leads to this app",
        mark="- name: support-intent@1.0.0",
        value="support-intent@1.0.0",
        severity=Severity.WARNING,
    ),
    "no ingress": Wrong(
        "import_path: deployments.ingress:app",
        "import_path: deployments.ingres:app",
        "applications",
        "no app has the import_path deployments.ingress:app: add the ingress",
        mark="applications:",
    ),
    "an import path that is not ours": Wrong(
        "import_path: deployments.embedder:app",
        "import_path: deployments.embeder:app",
        "applications.3.import_path",
        "not an app that modelyard ships: did you mean deployments.embedder:app?",
        value="deployments.embeder:app",
    ),
    "two ingresses": Wrong(
        "- name: all-minilm-l6-v2@1.0.0\n",
        SECOND_INGRESS,
        "applications.3",
        "a second ingress app: keep one",
        mark="name: second",
    ),
    "an ingress that is not on /": Wrong(
        "route_prefix: /\n",
        "route_prefix: /api\n",
        "applications.0.route_prefix",
        'the ingress answers on "/": write `route_prefix: /`',
        mark="route_prefix: /api",
        value="/api",
    ),
    "a model with a route": Wrong(
        'route_prefix: null  # leaving it out means "/"',
        "route_prefix: /smollm2",
        "applications.2.route_prefix",
        "only the ingress has a route: write `route_prefix: null`",
        value="/smollm2",
    ),
    "a model whose route_prefix is left out": Wrong(
        '  route_prefix: null  # leaving it out means "/"\n',
        "",
        "applications.2.route_prefix",
        "missing, and Serve's default is /: write `route_prefix: null`",
        mark="- name: smollm2-135m-instruct@1.0.0",
    ),
    "an app that is not named after its artifact": Wrong(
        "- name: smollm2-135m-instruct@1.0.0",
        "- name: smollm2-135m-instruct@1.1.0",
        "applications.2.name",
        "must be the artifact's name@version: write smollm2-135m-instruct@1.0.0",
        value="smollm2-135m-instruct@1.1.0",
    ),
    "an artifact without a version": Wrong(
        "artifact: file://~/.modelyard/models/smollm2-135m-instruct/1.0.0",
        "artifact: file://smollm2-135m-instruct",
        "applications.2.args.artifact",
        "must end in /<name>/<version>: give the folder of one version",
        value="file://smollm2-135m-instruct",
    ),
    "two apps of one name": Wrong(
        "- name: support-intent@1.0.0",
        "- name: all-minilm-l6-v2@1.0.0 # twice",
        "applications.4.name",
        "another app has this name: rename or remove one of them",
        value="all-minilm-l6-v2@1.0.0",
    ),
    "a deployment of another name": Wrong(
        "- name: Generator",
        "- name: generator",
        f"{GENERATOR}.name",
        "deployments.generator:app has one deployment, Generator: write that name",
        value="generator",
    ),
    "no deployments": Wrong(
        "  deployments:\n  - name: Reranker\n",
        "  logging_config:\n",
        "applications.5.deployments",
        "required and missing: add the options of Reranker",
        mark="- name: minilm-reranker@1.0.0",
    ),
    "args that a small model does not take": Wrong(
        "artifact: file://~/.modelyard/models/all-minilm-l6-v2/1.0.0}",
        "artifact: file://~/.modelyard/models/all-minilm-l6-v2/1.0.0, engine: {}}",
        "applications.3.args.engine",
        "unknown key: remove it, or use one of artifact",
        mark="engine: {}}",
    ),
    "an engine argument that changes answers": Wrong(
        "engine: {max_num_seqs: 32,",
        "engine: {max_num_seqs: 32, dtype: float16,",
        "applications.2.args.engine.dtype",
        "changes answers: make it a new version of the artifact",
        mark="dtype: float16",
        value="float16",
    ),
    "a tunable that does not exist": Wrong(
        "&batching {max_batch_size: 32,",
        "&batching {max_batch: 32,",
        f"{EMBEDDER}.user_config.max_batch",
        "unknown key: did you mean max_batch_size?",
        mark="&batching",
        value=32,
    ),
    "tunables for a generator": Wrong(
        "    autoscaling_config:\n",
        "    user_config: {temperature: 0}\n    autoscaling_config:\n",
        f"{GENERATOR}.user_config",
        "a generator has no tunables, and the deploy would fail: remove it",
        mark="temperature",
    ),
    "no tunables for a generator, but said so": Wrong(
        "    autoscaling_config:\n",
        "    user_config: {}\n    autoscaling_config:\n",
        f"{GENERATOR}.user_config",
        "a generator has no tunables, and the deploy would fail: remove it",
        mark="user_config: {}",
    ),
    "two GPUs' work without a GPU": Wrong(
        "engine: {max_num_seqs: 32,",
        "engine: {max_num_seqs: 32, tensor_parallel_size: 2,",
        "applications.2.args.engine.tensor_parallel_size",
        "needs 2 GPUs, and the deployment asks for fewer: set `ray_actor_options: {num_gpus: 2}`",
        mark="tensor_parallel_size",
        value=2,
    ),
    "arguments for the policy": Wrong(
        'QueuedPlusOngoing"}',
        'QueuedPlusOngoing", policy_kwargs: {}}',
        f"{GENERATOR}.autoscaling_config.policy.policy_kwargs",
        "modelyard's policy takes none",
        mark="policy_kwargs",
    ),
    "a router of the file's": Wrong(
        "    autoscaling_config:\n",
        "    request_router_config: {max_backoff_s: 0.1}\n    autoscaling_config:\n",
        f"{GENERATOR}.request_router_config",
        "the shells set it in code, and a change restarts the app: remove it",
        mark="request_router_config",
    ),
    "zero replicas without a delay of their own": Wrong(
        "min_replicas: 1",
        "min_replicas: 0",
        f"{GENERATOR}.autoscaling_config.downscale_to_zero_delay_s",
        "missing, and min_replicas is 0: set how many idle seconds end the last replica (Serve "
        "would take downscale_delay_s, 600)",
        mark="autoscaling_config:",
    ),
    "no ingress at all": Wrong(
        "    num_replicas: 2\n    max_ongoing_requests: 1000\n",
        "    max_ongoing_requests: 1000\n"
        + SCALING.replace("min_replicas: 1", "min_replicas: 0 #"),
        f"{INGRESS}.autoscaling_config.min_replicas",
        "only a model can be brought back from zero: set at least 1",
        mark="min_replicas: 0 #",
        value=0,
    ),
    "metrics as slow as Serve's default": Wrong(
        "      metrics_interval_s: 1\n",
        "",
        f"{GENERATOR}.autoscaling_config.metrics_interval_s",
        "missing, and Serve's default is 10: set 1, or the policy decides on old load",
        mark="autoscaling_config:",
    ),
    "an up-scale delay of minutes": Wrong(
        "max_replicas: 1  #",
        "max_replicas: 2\n      look_back_period_s: 5\n      upscale_delay_s: 60  #",
        f"{GENERATOR}.autoscaling_config.upscale_delay_s",
        "60 s pass before a burst adds a replica: set at most 5",
        mark="upscale_delay_s: 60",
        value=60.0,
        severity=Severity.WARNING,
    ),
    "a factor": Wrong(
        "metrics_interval_s: 1\n",
        "metrics_interval_s: 1\n      downscaling_factor: 0.5\n",
        f"{GENERATOR}.autoscaling_config.downscaling_factor",
        "modelyard's policy counts replicas, and a factor would undo what it holds: remove it",
        mark="downscaling_factor",
        value=0.5,
    ),
    "no replicas": Wrong(
        "num_replicas: 2\n    max_ongoing_requests: 1000",
        "num_replicas: 0\n    max_ongoing_requests: 1000",
        f"{INGRESS}.num_replicas",
        "Input should be greater than 0",
        mark="num_replicas: 0",
        value=0,
    ),
    "less than the whole of every app": Wrong(
        "http_options: {",
        "target_capacity: 50\nhttp_options: {",
        "target_capacity",
        "it scales every app at once, whatever its own numbers say: remove it",
        mark="target_capacity",
        value=50,
    ),
    "no proxy": Wrong(
        "http_options: {",
        "proxy_location: Disabled\nhttp_options: {",
        "proxy_location",
        "Input should be 'HeadOnly' or 'EveryNode'",
        mark="proxy_location",
        value="Disabled",
    ),
    "no port": Wrong(
        "port: 8000}",
        "port: 0}",
        "http_options.port",
        "Input should be greater than or equal to 1",
        value=0,
    ),
    "Ray's port": Wrong(
        "port: 8000}",
        "port: 8265}",
        "http_options.port",
        "Ray's dashboard listens there: choose another, such as 8000",
        value=8265,
    ),
    "a root path": Wrong(
        "port: 8000}",
        "port: 8000, root_path: /models}",
        "http_options.root_path",
        'the ingress answers on "/": remove it',
        value="/models",
    ),
    "TLS where HAProxy speaks none": Wrong(
        "port: 8000}",
        "port: 8000, ssl_certfile: /cert.pem}",
        "http_options.ssl_certfile",
        "Serve's HAProxy speaks plain HTTP: remove it, and end TLS in front of it",
        value="/cert.pem",
    ),
    "a proxy that gives up before the ingress does": Wrong(
        "port: 8000}",
        "port: 8000, request_timeout_s: 59.5}",
        "http_options.request_timeout_s",
        "below 60, the longest deadlines.total_s of a route: remove it, or raise it",
        value=59.5,
    ),
    "a negative timeout": Wrong(
        "port: 8000}",
        "port: 8000, request_timeout_s: -1}",
        "http_options.request_timeout_s",
        "Input should be greater than 0",
        value=-1,
    ),
    "a key that may do nothing": Wrong(
        "        roles: [admin, scrape]",
        "        roles: []",
        f"{INGRESS}.user_config.keys.2",
        "key 'ops-1' has no roles: add one, or remove the key",
        mark="- id: ops-1",
    ),
    "a lost policy": Wrong(
        '      policy: {policy_function: "cluster.scaling_policy:QueuedPlusOngoing"}\n',
        "",
        f"{GENERATOR}.autoscaling_config.policy.policy_function",
        "the policy is lost, because this dict replaces the code's whole: add `policy:",
        mark="    autoscaling_config:",
    ),
    "Serve's own policy through num_replicas: auto": Wrong(
        SCALING,
        "    num_replicas: auto\n",
        f"{GENERATOR}.num_replicas",
        "Serve's own policy sees no queue: write autoscaling_config with `policy:",
        mark="num_replicas: auto",
        value="auto",
    ),
    "replicas set twice": Wrong(
        "    autoscaling_config:\n",
        "    num_replicas: 7\n    autoscaling_config:\n",
        f"{GENERATOR}.num_replicas",
        "set together with autoscaling_config: keep one of the two",
        mark="num_replicas: 7",
        value=7,
    ),
    "a minimum above the maximum": Wrong(
        "min_replicas: 1",
        "min_replicas: 2",
        f"{GENERATOR}.autoscaling_config.min_replicas",
        "above max_replicas 1: lower it, or raise the maximum",
        value=2,
    ),
    "a first number of replicas out of bounds": Wrong(
        "min_replicas: 1",
        "initial_replicas: 3\n      min_replicas: 1",
        f"{GENERATOR}.autoscaling_config.initial_replicas",
        "not between min_replicas 1 and max_replicas 1",
        mark="initial_replicas: 3",
        value=3,
    ),
    "a target at the limit": Wrong(
        "target_ongoing_requests: 24",
        "target_ongoing_requests: 40",
        f"{GENERATOR}.autoscaling_config.target_ongoing_requests",
        "not below max_ongoing_requests 40: lower it",
        value=40,
    ),
    "no target": Wrong(
        "target_ongoing_requests: 24",
        "target_ongoing_requests: null",
        f"{GENERATOR}.autoscaling_config.target_ongoing_requests",
        "null is no target: set it below max_ongoing_requests 40",
    ),
    "no limit of ongoing requests": Wrong(
        "    max_ongoing_requests: 1000\n",
        "",
        f"{INGRESS}.max_ongoing_requests",
        "missing, and Serve's default is 5: set how many requests one replica takes at once",
        mark="- name: Ingress",
    ),
    "variables that the shells set": Wrong(
        "ray_actor_options: {num_cpus: 1}",
        "ray_actor_options: {runtime_env: {env_vars: {VLLM_CPU_KVCACHE_SPACE: '4'}}}",
        f"{GENERATOR}.ray_actor_options.runtime_env.env_vars.VLLM_CPU_KVCACHE_SPACE",
        "vLLM's variables change how the engine runs, and the shells set those it needs: remove it",
    ),
    "variables that the shells set, for a whole app": Wrong(
        "  import_path: deployments.generator:app\n",
        "  import_path: deployments.generator:app\n"
        "  runtime_env: {env_vars: {TORCHDYNAMO_DISABLE: '0'}}\n",
        "applications.2.runtime_env.env_vars.TORCHDYNAMO_DISABLE",
        "the shells set this variable themselves: remove it",
        mark="TORCHDYNAMO_DISABLE",
    ),
    "a drain shorter than the longest answer": Wrong(
        "total_s: 60}",
        "total_s: 90.5}",
        f"{GENERATOR}.graceful_shutdown_timeout_s",
        "a deploy would cut answers of 'support-assistant': set at least 90.5",
        mark="graceful_shutdown_timeout_s: 90  #",
        value=90,
    ),
    "an ingress whose drain is shorter than the longest answer": Wrong(
        "graceful_shutdown_timeout_s: 120",
        "graceful_shutdown_timeout_s: 59",
        f"{INGRESS}.graceful_shutdown_timeout_s",
        "a deploy would cut answers of",
        value=59,
    ),
    "a drain that is left out": Wrong(
        "    graceful_shutdown_timeout_s: 120  # at least the largest deadlines.total_s below\n",
        "",
        f"{INGRESS}.graceful_shutdown_timeout_s",
        "missing, and Serve's default is 20: a deploy would cut answers of",
        mark="- name: Ingress",
    ),
    "no host": Wrong(
        "http_options: {host: 127.0.0.1, port: 8000}",
        "http_options: {port: 8000}",
        "http_options.host",
        "missing, and Serve's default 0.0.0.0 listens on every network: write",
    ),
    "a public key on a public address": Wrong(
        "http_options: {host: 127.0.0.1,",
        "http_options: {host: 10.0.0.7,",
        f"{INGRESS}.user_config.keys.0",
        "key 'demo-1' is the public demonstration key, and http_options.host 10.0.0.7 is not "
        "loopback: make your own",
        mark="- id: demo-1",
    ),
    "a model that is not there": Wrong(
        "artifact: file://~/.modelyard/models/smollm2-135m-instruct/1.0.0",
        "artifact: file://~/.modelyard/models/other/smollm2-135m-instruct/1.0.0",
        "applications.2.args.artifact",
        "there is no such version: `modelyard models prepare` makes the starter models",
        value="file://~/.modelyard/models/other/smollm2-135m-instruct/1.0.0",
    ),
    "a version of one's own that is not there": Wrong(
        "artifact: file://~/.modelyard/models/smollm2-135m-instruct/1.0.0",
        "artifact: file:///nowhere/mine/1.0.0",
        "applications.2.args.artifact",
        "/nowhere/mine/1.0.0: no such folder: check the path, or put a version there with "
        "`modelyard models import`",
        value="file:///nowhere/mine/1.0.0",
    ),
    "an address that cannot be resolved": Wrong(
        "artifact: file://~/.modelyard/models/smollm2-135m-instruct/1.0.0",
        "artifact: ftp://somewhere/smollm2-135m-instruct/1.0.0",
        "applications.2.args.artifact",
        "only file:// and s3:// addresses are supported",
        value="ftp://somewhere/smollm2-135m-instruct/1.0.0",
    ),
    "a model of another kind": Wrong(
        "import_path: deployments.classifier:app",
        "import_path: deployments.reranker:app # a classifier",
        "applications.4.import_path",
        "the artifact is a classifier: write deployments.classifier:app",
        value="deployments.reranker:app",
    ),
    "more output than the model allows": Wrong(
        "limits: {max_output_tokens: 512,",
        "limits: {max_output_tokens: 2048,",
        f"{INGRESS}.user_config.routes.support-assistant.limits.max_output_tokens",
        "above the 1024 tokens that smollm2-135m-instruct@1.0.0 allows: set at most that",
        value=2048,
    ),
    "a version for two accelerators and none asked for": Wrong(
        GENERATOR_ARTIFACT,
        "artifact: file://~/.modelyard/models/of-two-gpus/1.0.0",
        "applications.2",
        "of-two-gpus@1.0.0 needs 2 accelerators (device.accelerators), and the deployment asks for "
        "0: set `ray_actor_options: {num_gpus: 2}`, or package a version for CPU",
        mark="- name: smollm2-135m-instruct@1.0.0",
    ),
    "a version for two accelerators that would use one": Wrong(
        GENERATOR_ARTIFACT,
        "artifact: file://~/.modelyard/models/of-two-gpus/1.0.0",
        "applications.2.args.engine.tensor_parallel_size",
        "of-two-gpus@1.0.0 is spread over 2 accelerators (device.accelerators): write 2",
        mark="engine: {max_num_seqs: 32,",
    ),
    "a digest that is another manifest's": Wrong(
        GENERATOR_ARTIFACT,
        f"{GENERATOR_ARTIFACT}\n    digest: {'a' * 64}",
        "applications.2.args.digest",
        "the manifest in this folder has the digest ",
        value="a" * 64,
        mark=f"digest: {'a' * 64}",
    ),
    "a version without known answers": Wrong(
        GENERATOR_ARTIFACT,
        "artifact: file://~/.modelyard/models/untested/1.0.0",
        "applications.2.args.artifact",
        "untested@1.0.0 has no golden.json, so a replica that computes wrongly would serve: import "
        "it again (`modelyard models import` records one)",
        value="file://~/.modelyard/models/untested/1.0.0",
        severity=Severity.WARNING,
    ),
    "answers that take longer than their manifest's drain": Wrong(
        GENERATOR_ARTIFACT,
        "artifact: file://~/.modelyard/models/slow/1.0.0",
        "applications.2.args.artifact",
        "an answer of 1024 tokens took 64 s at the 16 tokens/s that slow@1.0.0 was measured at, "
        "and its limits.drain_s is 60: a deploy may cut it; package a version with",
        value="file://~/.modelyard/models/slow/1.0.0",
        severity=Severity.WARNING,
    ),
    "a drain shorter than the manifest's": Wrong(
        GENERATOR_ARTIFACT,
        "artifact: file://~/.modelyard/models/long/1.0.0",
        f"{GENERATOR}.graceful_shutdown_timeout_s",
        "a deploy would cut answers of long@1.0.0: set at least 100, its manifest's limits.drain_s",
        mark="graceful_shutdown_timeout_s: 90  #",
        value=90,
    ),
    "an artifact that only the network has": Wrong(
        GENERATOR_ARTIFACT,
        "artifact: s3://models/smollm2-135m-instruct/1.0.0",
        "applications.2.args.artifact",
        "not looked at, since a check needs no network",
        value="s3://models/smollm2-135m-instruct/1.0.0",
        severity=Severity.WARNING,
    ),
}


def test_the_shipped_config_is_fine(models: Path) -> None:
    assert check(TEXT, models) == []


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG.keys())
def test_a_wrong_config_is_told_where_and_what_to_do(wrong: Wrong, models: Path) -> None:
    text = wrong.text
    faults = [fault for fault in check(text, models) if fault.path == wrong.path]
    assert faults, "no fault at the path"
    (fault,) = [found for found in faults if found.message.startswith(wrong.advice[:20])] or faults
    assert wrong.advice in fault.message
    assert fault.file == "local.serve.yaml"
    assert fault.line == wrong.line(text)
    assert fault.value == wrong.value
    assert fault.severity is wrong.severity


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("HF_HUB_OFFLINE", "the shells set this variable themselves"),
        ("OMP_NUM_THREADS", "Ray sets the threads from num_cpus"),
        ("CUDA_VISIBLE_DEVICES", "Ray sets it from num_gpus"),
        ("RAY_AUTH_MODE", "every process of a Ray cluster must agree on it"),
        ("MODELYARD_HOME", "every process of the platform must agree on it"),
    ],
)
def test_a_variable_that_something_else_sets_is_refused_with_its_reason(
    name: str, why: str, models: Path
) -> None:
    env = f"ray_actor_options: {{num_cpus: 1, runtime_env: {{env_vars: {{{name}: x}}}}}}"
    (fault,) = check(TEXT.replace("ray_actor_options: {num_cpus: 1}", env), models)
    assert fault.path.endswith(f"env_vars.{name}")
    assert fault.message.startswith(why)


def test_a_variable_that_nothing_else_sets_is_fine(models: Path) -> None:
    env = "ray_actor_options: {num_cpus: 1, runtime_env: {env_vars: {LANG: C}}}"
    assert check(TEXT.replace("ray_actor_options: {num_cpus: 1}", env), models) == []


@pytest.mark.parametrize(
    "resources",
    [
        "ray_actor_options: {num_gpus: 2}",
        "ray_actor_options: {num_gpus: 2}\n    placement_group_bundles: [{CPU: 1, GPU: 2}]",
    ],
)
def test_tensor_parallelism_with_its_gpus_is_fine(resources: str, models: Path) -> None:
    text = TEXT.replace("max_num_seqs: 32,", "max_num_seqs: 32, tensor_parallel_size: 2,")
    assert check(text.replace("ray_actor_options: {num_cpus: 1}", resources), models) == []


def test_one_key_under_two_names_is_a_fault_of_the_table(models: Path) -> None:
    table = yaml.safe_load(TEXT)["applications"][0]["deployments"][0]["user_config"]
    demo, nightly, _ = (key["sha256"] for key in table["keys"])
    (fault,) = check(TEXT.replace(nightly, demo), models)
    assert fault.path == f"{INGRESS}.user_config"
    assert "keys 'demo-1' and 'nightly-1' have one sha256" in fault.message


def test_a_proxy_as_patient_as_the_longest_answer_is_fine(models: Path) -> None:
    assert check(TEXT.replace("port: 8000}", "port: 8000, request_timeout_s: 60}"), models) == []


def with_a_second(model: str, name: str, changes: dict[str, Any], alias: str) -> str:
    """The shipped file with a copy of a model's app as `name`, and an alias's route changed."""
    root = yaml.safe_load(TEXT)
    apps = root["applications"]
    app = next(one for one in apps if one["name"].startswith(model))
    apps.append(yaml.safe_load(yaml.safe_dump(app).replace(model, name)))
    for one in apps[:2]:  # the ingress's table and control's, which are one
        one["deployments"][0]["user_config"]["routes"][alias] |= copy.deepcopy(changes)
    return yaml.safe_dump(root, sort_keys=False)


def add_manifest(models: Path, model: str, name: str, output_tokens: int | None) -> None:
    manifest = json.loads((models / model / "1.0.0" / "manifest.json").read_text())
    manifest["name"] = name
    if output_tokens is not None:
        manifest["limits"]["max_output_tokens"] = output_tokens
    folder = models / name / "1.0.0"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "manifest.json").write_text(json.dumps(manifest))


SMALLER = {"overload": {"fallback": "small@1.0.0", "cap_output_tokens": 128, "cap_at_percent": 80}}


def test_a_smaller_model_may_stand_in_and_is_an_app_that_is_used(models: Path) -> None:
    add_manifest(models, "smollm2-135m-instruct", "small", 512)
    text = with_a_second("smollm2-135m-instruct", "small", SMALLER, "support-assistant")
    assert check(text, models) == []


def test_a_fallback_must_drain_as_long_and_give_as_much_as_its_route(models: Path) -> None:
    add_manifest(models, "smollm2-135m-instruct", "small", 100)
    text = with_a_second("smollm2-135m-instruct", "small", SMALLER, "support-assistant")
    head, app = text.rsplit("graceful_shutdown_timeout_s: 90", 1)
    faults = check(f"{head}graceful_shutdown_timeout_s: 30{app}", models)
    assert {fault.path: fault.value for fault in faults} == {
        f"{ASSISTANT}.limits.max_output_tokens": 512,
        "applications.6.deployments.0.graceful_shutdown_timeout_s": 30,
    }


def test_no_embedder_stands_in_for_another(models: Path) -> None:
    add_manifest(models, "all-minilm-l6-v2", "small", None)
    fallback = {"overload": {"fallback": "small@1.0.0"}}
    text = with_a_second("all-minilm-l6-v2", "small", fallback, "support-embed")
    (fault,) = check(text, models)
    assert fault.path == f"{ROUTES}.support-embed.overload.fallback"
    assert (fault.value, fault.severity) == ("small@1.0.0", Severity.ERROR)
    assert fault.message.endswith("an embedder has no stand-in; remove it")


def embedder_with_a_canary(models: Path, space: str | None) -> list[Fault]:
    stable = read_manifest(models / "all-minilm-l6-v2" / "1.0.0")
    update = {"name": "small", "embedding_space": space}
    put_manifest(models, stable.model_copy(update=update))
    canary = {"canary": "small@1.0.0", "rollout": {"id": "r-1"}}
    return check(with_a_second("all-minilm-l6-v2", "small", canary, "support-embed"), models)


def test_an_embedder_may_have_a_canary_of_its_own_space(models: Path) -> None:
    assert embedder_with_a_canary(models, "tiny") == []


@pytest.mark.parametrize(("space", "named"), [("other", "other"), (None, "not given")])
def test_an_embedders_canary_of_another_space_is_refused_and_both_are_named(
    space: str | None, named: str, models: Path
) -> None:
    (fault,) = embedder_with_a_canary(models, space)
    assert (fault.path, fault.severity) == (f"{ROUTES}.support-embed.canary", Severity.ERROR)
    assert fault.message.startswith(
        f"its embedding_space is {named}, that of the stable version is tiny, and only"
    )


def test_nothing_is_said_of_a_space_that_cannot_be_read_here(models: Path) -> None:
    canary = {"canary": "far@1.0.0", "rollout": {"id": "r-1"}}
    text = with_a_second("all-minilm-l6-v2", "far", canary, "support-embed")
    paths = [fault.path for fault in check(text, models)]  # there is no such folder
    assert paths == ["applications.6.args.artifact"]


def test_an_embedder_has_no_failover(models: Path) -> None:
    add_manifest(models, "all-minilm-l6-v2", "small", None)
    failover = {"constraints": [{"failover": "small@1.0.0"}]}
    (fault,) = check(with_a_second("all-minilm-l6-v2", "small", failover, "support-embed"), models)
    assert (fault.path[-8:], fault.severity) == ("failover", Severity.WARNING)
    assert fault.message.endswith("an embedder has no stand-in; give it an alias of its own")


PLAN = {
    "id": "assistant-1.1",
    "gates": {"quality": {"margin_points": 5}},
    "judge": {"model": "judge"},
}


def test_a_plan_that_can_be_decided_is_fine(models: Path) -> None:
    add_manifest(models, "smollm2-135m-instruct", "next", 1024)
    add_manifest(models, "smollm2-135m-instruct", "critic", 1024)
    canary = {"canary": "next@1.0.0", "rollout": PLAN}
    root = yaml.safe_load(
        with_a_second("smollm2-135m-instruct", "next", canary, "support-assistant")
    )
    judge = copy.deepcopy(root["applications"][2])
    judge |= {"name": "critic@1.0.0"}
    judge["args"]["artifact"] = "file://~/.modelyard/models/critic/1.0.0"
    root["applications"].append(judge)
    for one in root["applications"][:2]:
        table = one["deployments"][0]["user_config"]
        table["tenants"]["demo"]["judged"] = True
        table["routes"]["judge"] = {"stable": "critic@1.0.0"}
    assert check(yaml.safe_dump(root, sort_keys=False), models) == []


@pytest.mark.parametrize(
    ("gates", "generates", "needed"),
    [
        ({}, True, 200),
        ({"errors": None}, True, 166),
        ({"errors": {"margin_points": 0.1}}, True, 1000),
        ({"errors": None, "tokens": {"margin_percent": 10}}, True, 357),
        ({"errors": None}, False, 100),
        ({"errors": None, "e2e": None}, False, 0),
        ({"errors": None, "e2e": None, "tokens": None}, True, 100),
    ],
)
def test_how_many_requests_a_gate_needs(
    gates: dict[str, Any], generates: bool, needed: int
) -> None:
    found = samples_for(Gates.model_validate(gates), generates=generates)
    assert max((count for count, _ in found), default=0) == needed


def test_a_version_for_two_accelerators_is_fine_with_two(models: Path) -> None:
    text = TEXT.replace("smollm2-135m-instruct", "of-two-gpus").replace(
        "max_num_seqs: 32,", "max_num_seqs: 32, tensor_parallel_size: 2,"
    )
    text = text.replace("ray_actor_options: {num_cpus: 1}", "ray_actor_options: {num_gpus: 2}")
    assert check(text, models) == []


def test_a_pinned_digest_that_is_the_manifests_is_fine(models: Path) -> None:
    digest = read_manifest(models / "smollm2-135m-instruct" / "1.0.0").digest()
    pinned = f"{GENERATOR_ARTIFACT}\n    digest: {digest}"
    assert check(TEXT.replace(GENERATOR_ARTIFACT, pinned), models) == []


def test_tenants_with_a_cell_of_their_own_are_told_where_they_have_no_fallback(
    models: Path,
) -> None:
    add_manifest(models, "smollm2-135m-instruct", "small", 512)
    changes = SMALLER | {"constraints": [{"tenants": ["demo"], "cell": "b"}]}
    text = with_a_second("smollm2-135m-instruct", "small", changes, "support-assistant")
    faults = [fault for fault in check(text, models) if fault.severity is Severity.WARNING]
    (fault,) = [fault for fault in faults if fault.path.endswith("constraints.0.cell")]
    assert fault.message.startswith("no app of this file is named small@1.0.0--b, so these tenants")


def test_a_short_queue_is_fine_where_more_may_run_than_scaling_aims_at(models: Path) -> None:
    text = TEXT.replace("max_queued_requests: 100", "max_queued_requests: 1")
    assert check(text, models) == []


def test_a_tier_before_its_first_tenant_is_a_warning_that_says_so(models: Path) -> None:
    text = TEXT.replace("{paid: {weight: 4}}", "{paid: {weight: 4}, reserved: {}}")
    (fault,) = check(text, models)
    assert (fault.severity, fault.path) == (
        Severity.WARNING,
        f"{INGRESS}.user_config.tiers.reserved",
    )
    assert fault.message == "no tenant has this tier: remove it, or give it to a tenant"


def test_the_ports_of_ray_that_we_name_are_those_of_a_local_head() -> None:
    ports = LocalPorts()
    named = {ports.dashboard, ports.dashboard_agent, ports.fallback_proxy}
    assert set(RAY_PORTS) == named


def test_the_variables_that_shells_set_are_refused() -> None:
    for name in vllm_engine.ENVIRONMENT | vllm_engine.CPU_ENVIRONMENT:
        assert name in RESERVED or name.startswith(tuple(RESERVED_PREFIXES))


def test_every_fault_of_a_file_is_reported_at_once_in_its_order(models: Path) -> None:
    text = TEXT.replace("max_ongoing_requests: 1000", "max_ongoing_request: 1000").replace(
        "min_replicas: 1", "min_replicas: 3"
    )
    assert [fault.path for fault in check(text, models)] == [
        f"{INGRESS}.max_ongoing_requests",
        f"{INGRESS}.max_ongoing_request",
        f"{GENERATOR}.autoscaling_config.min_replicas",
    ]


def test_one_mistake_is_told_once(models: Path) -> None:
    for old, new in (
        ("http_options: {host: 127.0.0.1, port: 8000}", "http_options: {port: 8000}"),
        ("import_path: deployments.embedder:app", "import_path: deployments.embeder:app"),
        ("    max_ongoing_requests: 40  # a little above max_num_seqs", "    #"),
    ):
        assert TEXT.count(old) == 1
        assert len(check(TEXT.replace(old, new), models)) == 1


def test_a_second_cell_of_a_version_adds_to_the_apps_name(models: Path) -> None:
    text = TEXT.replace(
        "- name: support-intent@1.0.0",
        "- name: support-intent@1.0.0--b",
    )
    assert check(text, models) == []


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "localhost", "'::1'"])
def test_demonstration_keys_are_fine_on_loopback(host: str, models: Path) -> None:
    assert check(TEXT.replace("host: 127.0.0.1", f"host: {host}"), models) == []


def test_a_manifest_of_another_version_in_the_folder_is_named(tmp_path: Path, models: Path) -> None:
    for name in MODELS:
        (tmp_path / name).mkdir()
        manifest = (models / name / "1.0.0" / "manifest.json").read_text()
        (tmp_path / name / "1.0.0").mkdir()
        (tmp_path / name / "1.0.0" / "manifest.json").write_text(
            manifest.replace('"name":"support-intent"', '"name":"support-mood"')
        )
    (fault,) = check(TEXT, tmp_path)
    assert fault.path == "applications.4.args.artifact"
    assert "the manifest in this folder is of support-mood@1.0.0" in fault.message


def test_a_table_alone_is_checked_too() -> None:
    table = yaml.safe_load(TEXT)["applications"][0]["deployments"][0]["user_config"]
    report = check_document(parse_document(yaml.safe_dump(table), "table.yaml"), Path)
    assert (report.ok, report.apps, report.routes) == (True, 0, 4)
    assert report.digest is not None
    del table["routes"]["support-embed"]
    report = check_document(parse_document(yaml.safe_dump(table), "table.yaml"), Path)
    assert not report.ok
    assert "tenant 'nightly' lists the model 'support-embed'" in report.faults[0].message


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("schema: modelyard/fleet/v1\n", "node_pools: required and missing"),
        ("schema: modelyard/tabel/v1\n", "unknown schema: did you mean modelyard/table/v1?"),
        ("application: []\n", "unknown key: did you mean applications?"),
        ("applications: []\n", "List should have at least 1 item"),
    ],
)
def test_other_files_get_a_sentence(text: str, expected: str) -> None:
    report = check_document(parse_document(text, "x.yaml"), Path)
    assert not report.ok
    assert any(expected in str(fault) for fault in report.faults)


def test_every_rule_has_a_wrong_config_of_its_own(models: Path) -> None:
    """Take a rule away and some wrong config is no longer told so."""
    from modelyard.config.checked import take_apart

    fired = set()
    for wrong in WRONG.values():
        document = parse_document(wrong.text, "x.yaml")
        checked, _ = take_apart(document, partial(resolve, models=models))
        if checked is not None:
            fired |= {rule for rule in RULES if any(rule(checked))}
    assert fired == set(RULES)


junk: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, 0, -1, 1e309, "", "x", "a\x00b", "file://[", [], [[]], {}, {"x": {}}, {"name": 1}]
)


@given(data=st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_no_file_makes_the_check_raise(data: st.DataObject, models: Path) -> None:
    root = yaml.safe_load(TEXT)
    for _ in range(data.draw(st.integers(1, 3))):
        here = root
        while True:
            keys = list(here) if isinstance(here, dict) else list(range(len(here)))
            if not keys:
                break
            key = data.draw(st.sampled_from(keys))
            if not isinstance(here[key], dict | list) or data.draw(st.integers(0, 3)) == 0:
                here[key] = copy.deepcopy(data.draw(junk))
                break
            here = here[key]
    for fault in check(yaml.safe_dump(root), models):
        assert fault.message
        assert "\n" not in str(fault)


def test_a_swap_area_has_room_for_one_cell_of_a_model(models: Path) -> None:
    text = TEXT.replace(TIERS, swap_areas(d1="support-intent@1.0.0: 4"))
    root = yaml.safe_load(text)
    (app,) = (one for one in root["applications"] if one["name"] == "support-intent@1.0.0")
    del app["deployments"][0]["num_replicas"]
    app["deployments"][0]["autoscaling_config"] = {
        "min_replicas": 0,
        "max_replicas": 1,
        "target_ongoing_requests": 24,
        "metrics_interval_s": 1,
        "downscale_to_zero_delay_s": 60,
        "look_back_period_s": 10,
        "upscale_delay_s": 5,
        "policy": {"policy_function": "cluster.scaling_policy:QueuedPlusOngoing"},
    }
    assert check(yaml.safe_dump(root, sort_keys=False), models) == []
    root["applications"].append(copy.deepcopy(app) | {"name": "support-intent@1.0.0--b"})
    (fault,) = check(yaml.safe_dump(root, sort_keys=False), models)
    assert fault.message == "it has 2 cells, and the area d1 room for one: plan again"
