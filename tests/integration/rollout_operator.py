"""Who runs a rollout in the live tests: deploys files, says verbs, looks until something is so."""

from __future__ import annotations

import copy
import os
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from cluster.local import LocalCluster
from cluster.local_environment import ray_command
from modelyard.config.demo import OPS_KEY
from modelyard.config.settings import Settings

# It only ends a test that hangs.
WITHIN_S: Final = 900.0
LOOK_EACH_S: Final = 0.2


class RolloutOperator:
    """Of a platform that runs. Use it as a context: it keeps a connection."""

    def __init__(self, platform: Any) -> None:
        self.platform = platform
        running = LocalCluster(Settings(platform.home, platform.home / "secret")).running()
        assert running is not None
        self._dashboard = running.dashboard_url
        self._client = platform.client(OPS_KEY)

    def __enter__(self) -> RolloutOperator:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def deploy(self, record: Mapping[str, Any]) -> Path:
        """`serve deploy`, without `modelyard check`: it refuses the tests' own shells."""
        path = Path(self.platform.home) / "rollout.serve.yaml"
        path.write_text(str(yaml.safe_dump(dict(record), sort_keys=False)))
        done = subprocess.run(
            [ray_command("serve"), "deploy", str(path), "--address", self._dashboard],
            env=os.environ | {"RAY_AUTH_MODE": "token"},
            capture_output=True,
            text=True,
            check=False,
            timeout=180,
        )
        assert done.returncode == 0, done.stderr[-2000:]
        return path

    def verb(self, rollout: str, verb: str, reason: str = "a test") -> dict[str, Any]:
        answer = self._client.post(f"/admin/rollouts/{rollout}/{verb}", json={"reason": reason})
        assert answer.status_code == 200, answer.text
        done: dict[str, Any] = answer.json()
        return done

    def view(self, rollout: str) -> dict[str, Any] | None:
        """None while control does not know it, or does not answer."""
        answer = self._client.get(f"/admin/rollouts/{rollout}")
        if answer.status_code in (404, 503):
            return None
        assert answer.status_code == 200, answer.text
        view: dict[str, Any] = answer.json()
        return view

    def history(self, rollout: str) -> list[dict[str, Any]]:
        answer = self._client.get(f"/admin/rollouts/{rollout}/history").raise_for_status()
        decisions: list[dict[str, Any]] = answer.json()["decisions"]
        return decisions

    def revision(self) -> int:
        return int(self._client.get("/admin/status").raise_for_status().json()["revision"])

    def wait_until(self, rollout: str, *phases: str) -> dict[str, Any]:
        """The view in one of these phases; any other end is a failure, told with its evidence."""
        until = time.monotonic() + WITHIN_S
        view: dict[str, Any] | None = None
        while time.monotonic() < until:
            view = self.view(rollout)
            if view is not None and view["phase"] in phases:
                return view
            if view is not None and view["phase"] in ("Promoted", "RolledBack", "Aborted"):
                break
            time.sleep(LOOK_EACH_S)
        pytest.fail(f"it is not {' or '.join(phases)} but {view}")


def with_canary(
    record: dict[str, Any], alias: str, canary: str, app: dict[str, Any], plan: dict[str, Any]
) -> dict[str, Any]:
    """The config with one more app and a plan on an alias, in the ingress's table and control's."""
    changed = copy.deepcopy(record)
    changed["applications"].append(app)
    for one in changed["applications"]:
        table = one["deployments"][0].get("user_config") or {}
        if "routes" in table:
            table["routes"][alias] |= {"canary": canary, "rollout": plan}
    return changed
