"""Canaries without cost of their own, and plans on them: for what users see of a rollout.

The classifier's is the same model again. The generator's only sleeps and says one word: nobody can
take its answers for the real ones, and no second engine is needed.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from itertools import count
from pathlib import Path
from typing import Any, Final

import yaml

from tests.integration import stand_in
from tests.integration.rollout_operator import RolloutOperator
from tests.integration.rollout_versions import make_version

ROOT: Final = Path(__file__).parents[2]
INTENT, ASSISTANT = "support-intent", "support-assistant"
VERSION: Final = "9.3.0"
STABLE_OF: Final = {INTENT: "support-intent@1.0.0", ASSISTANT: "smollm2-135m-instruct@1.0.0"}
CANARY_OF: Final = {INTENT: f"support-intent@{VERSION}", ASSISTANT: stand_in.VERSION}
PLAN: Final[dict[str, Any]] = {
    "steps_percent": [50, 100],
    "hold_s": 600,
    "min_samples": 20,
    "keep_for_s": 0,
    # Noise of two shared cores is no business of these tests.
    "gates": {"errors": {"margin_points": 20}, "ttft": None, "e2e": None, "tokens": None},
}


class Canaries:
    """Of the running platform: its own file with both canaries."""

    def __init__(self, operator: RolloutOperator, folder: Path) -> None:
        self._operator = operator
        self._ids = count(1)
        self._original = yaml.safe_load(operator.platform.config.read_text())
        models = Path(operator.platform.home) / "models"
        intent = make_version(models / INTENT / "1.0.0", folder, VERSION)
        stand_in.write_artifact(talker := folder / stand_in.NAME / "1.0.0")
        self._apps = (
            self._app(INTENT, artifact=intent.as_uri()),
            self._app(ASSISTANT, artifact=talker.as_uri())
            | {
                "import_path": "tests.integration.stand_in:app",
                "runtime_env": {"env_vars": {"PYTHONPATH": str(ROOT)}},
            },
        )

    def deploy(self, alias: str, *, judged: Iterable[str] = (), **plan: Any) -> str:
        """The rollout's id. judged: tenants that agree to a judge. With the id of a rollout that
        runs, its plan changes."""
        whole = {"id": f"users-{next(self._ids)}"} | PLAN | plan
        record = copy.deepcopy(self._original)
        record["applications"] += self._apps
        for application in record["applications"]:
            table = application["deployments"][0].get("user_config") or {}
            if "routes" in table:
                table["routes"][alias] |= {"canary": CANARY_OF[alias], "rollout": whole}
                for tenant in judged:
                    table["tenants"][tenant]["judged"] = True
        self._operator.deploy(record)
        if "id" not in plan:
            self._operator.wait_until(str(whole["id"]), "Pending")
        return str(whole["id"])

    def remove(self) -> None:
        self._operator.deploy(self._original)

    def _app(self, alias: str, **args: str) -> dict[str, Any]:
        """Behind the same deployment as the stable version, in one replica."""
        applications = self._original["applications"]
        [stable] = [one for one in applications if one["name"] == STABLE_OF[alias]]
        deployment = {
            "name": stable["deployments"][0]["name"],
            "num_replicas": 1,
            "max_ongoing_requests": stand_in.SLOTS,
            "health_check_period_s": 2,
            "health_check_timeout_s": 10,
            "ray_actor_options": {"num_cpus": 0.3},
        }
        return {
            "name": CANARY_OF[alias],
            "route_prefix": None,
            "import_path": stable["import_path"],
            "args": args,
            "deployments": [deployment],
        }
