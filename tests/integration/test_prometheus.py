"""A real Prometheus, from Debian's package, scrapes the running platform at one address."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from modelyard.config.demo import OPS_KEY

pytestmark = [pytest.mark.integration, pytest.mark.slow]

CACHE: Final = Path("~/.cache/modelyard-tests/prometheus").expanduser()
DASHBOARD: Final = Path(__file__).parents[2] / "docs" / "grafana" / "modelyard.json"
SENT: Final = 24
CONFIG: Final = """\
global: {{scrape_interval: 5s, scrape_timeout: 5s}}  # a process that is away costs 2 s
scrape_configs:
- job_name: modelyard
  authorization: {{credentials: {key}}}
  static_configs: [{{targets: ["{target}"]}}]
"""


@pytest.fixture(scope="session")
def prometheus_binary() -> Path:
    """Debian's Prometheus, unpacked beside the system: installing it would start a service."""
    if installed := shutil.which("prometheus"):
        return Path(installed)
    binary = CACHE / "usr" / "bin" / "prometheus"
    if binary.exists():
        return binary
    if not (shutil.which("apt-get") and shutil.which("dpkg")):
        pytest.skip("there is neither a prometheus in PATH nor apt-get and dpkg to fetch one")
    CACHE.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        ["apt-get", "download", "prometheus"],
        cwd=CACHE,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        pytest.skip(f"apt-get could not fetch prometheus: {done.stderr.strip()[-200:]}")
    [package] = CACHE.glob("prometheus_*.deb")
    subprocess.run(["dpkg", "-x", str(package), str(CACHE)], check=True)
    package.unlink()
    return binary


class Prometheus:
    """A running Prometheus and its query API."""

    def __init__(self, url: str) -> None:
        self.url = url

    def query(self, expression: str) -> list[dict[str, Any]]:
        """The result vector. Fails the test for what Prometheus refuses."""
        answer = httpx.get(f"{self.url}/api/v1/query", params={"query": expression}, timeout=30)
        body = answer.json()
        assert body["status"] == "success", (expression, body)
        found: list[dict[str, Any]] = body["data"]["result"]
        return found

    def number(self, expression: str) -> float:
        """The one value of an expression, 0 when there is none yet."""
        found = self.query(expression)
        assert len(found) <= 1, found
        return float(found[0]["value"][1]) if found else 0.0

    def is_ready(self) -> bool:
        try:
            return httpx.get(f"{self.url}/-/ready", timeout=5).status_code == 200
        except httpx.HTTPError:
            return False


@pytest.fixture(scope="module")
def prometheus(
    platform: Any,
    prometheus_binary: Path,
    tmp_path_factory: pytest.TempPathFactory,
    wait_for: Callable[[str, Callable[[], Any]], Any],
) -> Iterator[Prometheus]:
    folder = tmp_path_factory.mktemp("prometheus")
    config = folder / "prometheus.yml"
    config.write_text(CONFIG.format(key=OPS_KEY, target=platform.url.removeprefix("http://")))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [
                str(prometheus_binary),
                f"--config.file={config}",
                f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address={address}",
                "--log.level=warn",
            ],
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    made = Prometheus(f"http://{address}")
    try:
        wait_for("Prometheus ready", made.is_ready)
        wait_for("a scrape", lambda: made.number("up"))
        yield made
    finally:
        process.terminate()
        process.wait(30)


def send(platform: Any, count: int) -> None:
    """Each on a connection of its own, so that both ingresses get some."""
    for number in range(count):
        with platform.client() as http:
            body = {"model": "support-embed", "input": f"text {number}"}
            assert http.post("/v1/embeddings", json=body).status_code == 200


def test_requests_are_counted_once_over_all_ingresses(
    platform: Any, prometheus: Prometheus, wait_for: Callable[[str, Callable[[], Any]], Any]
) -> None:
    counted = 'sum(modelyard_requests_total{route="/v1/embeddings",code="ok"})'
    # Read at the source: other tests of the session may have sent some before.
    before = sum(
        value
        for labels, value in scrape(platform, "modelyard_requests_total")
        if labels["route"] == "/v1/embeddings" and labels["code"] == "ok"
    )
    send(platform, SENT)
    wait_for("the requests", lambda: prometheus.number(counted) >= before + SENT)
    assert prometheus.number(counted) == before + SENT
    by_ingress = prometheus.query(f"{counted.replace('sum(', 'sum by (replica) (')}")
    assert len(by_ingress) == 2
    assert all(float(one["value"][1]) > 0 for one in by_ingress)


def test_every_process_answers_every_scrape(platform: Any, prometheus: Prometheus) -> None:
    assert prometheus.number("sum(modelyard_scrape_missing)") == 0
    apps = {one["metric"]["app"] for one in prometheus.query("modelyard_build_info")}
    assert {"ingress", "control"} < apps
    assert len(apps) == 6
    assert prometheus.number("count(modelyard_replica_phase) by ()") == 4
    assert prometheus.number("count(vllm:num_requests_running) by ()") == 1
    assert prometheus.number("min(modelyard_config_valid)") == 1
    assert prometheus.number("modelyard_control_up") == 1


def test_a_process_that_hangs_is_missed_and_the_others_answer(platform: Any) -> None:
    embedder = platform.replica("all-minilm-l6-v2@1.0.0")
    os.kill(embedder.pid, signal.SIGSTOP)
    try:
        missing = scrape(platform, "modelyard_scrape_missing")
    finally:
        os.kill(embedder.pid, signal.SIGCONT)
    gone = [labels["replica"] for labels, value in missing if value == 1]
    assert gone == [embedder.replica]
    assert len(missing) == 8  # two ingresses, four models, control, the board


def test_prometheus_can_answer_every_panel_of_the_dashboard(
    platform: Any, prometheus: Prometheus, wait_for: Callable[[str, Callable[[], Any]], Any]
) -> None:
    body = {
        "model": "support-assistant",
        "messages": [{"role": "user", "content": "Count to five."}],
        "max_tokens": 16,
    }
    with platform.client() as http:
        for stream in (False, True):
            done = http.post("/v1/chat/completions", json=body | {"stream": stream})
            assert done.status_code == 200
        assert http.post("/v1/chat/completions", json=body | {"model": "no"}).status_code == 404
    panels = {
        panel["title"]: [filled(target["expr"]) for target in panel["targets"]]
        for panel in json.loads(DASHBOARD.read_text())["panels"]
        if "targets" in panel
    }
    for expressions in panels.values():
        for expression in expressions:
            prometheus.query(expression)  # fails for what Prometheus cannot parse
    for title in (
        "Requests by code",
        "Refused by reason",
        "Time to first token",
        "Inter-token latency",
        "Duration of answers",
        "Tokens",
        "Phases",
        "Start-up time by phase",
        "Sequences",
        "KV cache in use",
        "Configuration valid",
        "Control up",
        "Missing from the scrape",
        "Releases",
    ):
        # A rate needs two scrapes.
        wait_for(title, partial(answered, prometheus, panels[title]))


def answered(prometheus: Prometheus, expressions: list[str]) -> bool:
    return all(prometheus.query(expression) for expression in expressions)


def filled(expression: str) -> str:
    """As Grafana sends it when everything is chosen."""
    return re.sub(r"\$(model|version|arm)", ".*", expression.replace("$__rate_interval", "60s"))


def scrape(platform: Any, series: str) -> list[tuple[dict[str, str], float]]:
    """The samples of a series, by their labels, from /metrics itself."""
    with platform.client(OPS_KEY) as http:
        text = http.get("/metrics").text
    return [
        (sample.labels, sample.value)
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == series
    ]
