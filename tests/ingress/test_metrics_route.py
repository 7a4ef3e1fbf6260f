import httpx
import pytest

from modelyard.config.table import Table
from modelyard.ingress.metrics import add_routes
from modelyard.telemetry.exposition import CONTENT_TYPE
from modelyard.tenancy.claim import verify
from modelyard.testing.in_memory import ALPHA_KEY, OPS_KEY, SECRET, InMemoryIngress, bearer


class Platform:
    """What would ask every process."""

    def __init__(self) -> None:
        self.tokens: list[str] = []

    async def scrape(self, token: str, table: Table | None) -> str:
        assert table is not None
        self.tokens.append(token)
        return "modelyard_up 1\n"


async def got(platform: Platform, key: str | None) -> httpx.Response:
    ingress = InMemoryIngress()
    add_routes(ingress.app, ingress.pipeline, platform)
    transport = httpx.ASGITransport(ingress.app)
    async with httpx.AsyncClient(transport=transport, base_url="http://x") as http:
        return await http.get("/metrics", headers=bearer(key) if key else {})


async def test_a_key_with_the_role_reads_the_whole_platform() -> None:
    platform = Platform()
    response = await got(platform, OPS_KEY)
    assert response.status_code == 200
    assert response.text == "modelyard_up 1\n"
    assert response.headers["content-type"] == CONTENT_TYPE
    [token] = platform.tokens
    assert "scrape" in verify(token, SECRET).roles  # what each process checks again


@pytest.mark.parametrize(
    ("key", "status"), [(None, 401), ("my_x-1_unknown", 401), (ALPHA_KEY, 403)]
)
async def test_nobody_else_reads_anything(key: str | None, status: int) -> None:
    platform = Platform()
    response = await got(platform, key)
    assert response.status_code == status
    assert platform.tokens == []
    assert "modelyard_up" not in response.text
