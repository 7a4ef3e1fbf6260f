"""Serve's own REST, for when no driver can join the cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import httpx

from cluster.observe import AppView, Unreachable, views_of
from cluster.ray_token import ray_token
from cluster.running import Running
from modelyard.control.reading import Reading

WITHIN_S: Final = 10.0
NOTHING_READ: Final = Reading((), (), (), None, None, up_s=0.0)


def apps_by_rest(running: Running, transport: httpx.BaseTransport | None = None) -> list[AppView]:
    """Every app as Serve's dashboard tells it, without what replicas post. Raises Unreachable."""
    try:
        return views_of(_applications(running, transport), NOTHING_READ)
    except (ValueError, KeyError, TypeError) as error:
        raise _odd(error) from error


def deployed_by_rest(
    running: Running, transport: httpx.BaseTransport | None = None
) -> dict[str, Mapping[str, Any]]:
    """The config that each app was last deployed with, by name. Raises Unreachable."""
    try:
        applications = _applications(running, transport)
        return {name: app["deployed_app_config"] or {} for name, app in applications.items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _odd(error) from error


def _applications(running: Running, transport: httpx.BaseTransport | None) -> Mapping[str, Any]:
    try:
        with httpx.Client(transport=transport, timeout=WITHIN_S) as client:
            answer = client.get(
                f"{running.dashboard_url}/api/serve/applications/",
                headers={"Authorization": f"Bearer {ray_token()}"},
            )
            answer.raise_for_status()
            applications: Mapping[str, Any] = answer.json()["applications"]
            return applications
    except httpx.HTTPError as error:
        raise _odd(error) from error


def _odd(error: Exception) -> Unreachable:
    return Unreachable(f"Serve's REST does not answer as it should: {error}")
