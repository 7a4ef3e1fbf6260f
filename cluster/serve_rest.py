"""Serve's own REST, for when no driver can join the cluster."""

from __future__ import annotations

from typing import Final

import httpx

from cluster.local import Running, ray_token
from cluster.observe import AppView, Unreachable, views_of
from modelyard.control.reading import Reading

WITHIN_S: Final = 10.0
NOTHING_READ: Final = Reading((), (), (), None, None, up_s=0.0)


def apps_by_rest(running: Running, transport: httpx.BaseTransport | None = None) -> list[AppView]:
    """Every app as Serve's dashboard tells it, without what replicas post. Raises Unreachable."""
    try:
        with httpx.Client(transport=transport, timeout=WITHIN_S) as client:
            answer = client.get(
                f"{running.dashboard_url}/api/serve/applications/",
                headers={"Authorization": f"Bearer {ray_token()}"},
            )
            answer.raise_for_status()
            return views_of(answer.json()["applications"], NOTHING_READ)
    except (httpx.HTTPError, ValueError, KeyError, TypeError) as error:
        raise Unreachable(f"Serve's REST does not answer as it should: {error}") from error
