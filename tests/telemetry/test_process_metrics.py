from collections.abc import Iterator

from prometheus_client import Metric
from prometheus_client.registry import Collector

from modelyard import __version__
from modelyard.contract.errors import Failure
from modelyard.quota.messages import Tally
from modelyard.telemetry.exposition import Scrape
from modelyard.telemetry.process_metrics import ProcessMetrics
from modelyard.telemetry.quota_metrics import QuotaMetrics
from modelyard.telemetry.replica_metrics import EngineMetrics, QueueMetrics
from modelyard.tenancy.claim import Claim, sign
from modelyard.testing.in_memory import SECRET


def token(*roles: str, secret: bytes = SECRET) -> str:
    return sign(Claim("", "ops-1", "", "", "batch", roles, ()), secret)


async def test_a_claim_with_the_role_reads_everything() -> None:
    metrics = ProcessMetrics("app", "r1", SECRET, QueueMetrics(lambda: (2, 5)))
    scrape = await metrics.scrape(token("scrape", "admin"))
    assert isinstance(scrape, Scrape)
    assert scrape.process == ("app", "r1")
    assert "modelyard_sequences_active 2.0" in scrape.text
    assert "modelyard_sequences_waiting 5.0" in scrape.text
    assert f'modelyard_build_info{{release="{__version__}"}} 1.0' in scrape.text


async def test_nobody_else_reads_anything() -> None:
    metrics = ProcessMetrics("app", "r1", SECRET)
    other = token("scrape", secret=b"another signing key, as long: 32")
    for given, code in (
        (token("invoke"), "forbidden"),
        (other, "unauthenticated"),
        ("", "unauthenticated"),
    ):
        refused = await metrics.scrape(given)
        assert isinstance(refused, Failure)
        assert refused.code == code


class Registry(Collector):
    """prometheus_client's global registry as vLLM leaves it."""

    def __init__(self, *names: str) -> None:
        self._names = names

    def collect(self) -> Iterator[Metric]:
        for name in self._names:
            metric = Metric(name, "Theirs.", "gauge")
            metric.add_sample(name, {"engine": "0", "model_name": "m"}, 0.5)
            yield metric


async def test_a_generator_shows_what_vllm_counts_and_nothing_of_others() -> None:
    names = ("vllm:num_requests_running", "vllm:kv_cache_usage_perc", "python_gc_objects")
    metrics = ProcessMetrics("app", "r1", SECRET, EngineMetrics(Registry(*names)))
    text = (await metrics.read()).text
    assert 'vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.5' in text
    assert "modelyard_kv_cache_ratio 0.5" in text
    assert "modelyard_sequences_active 0.5" in text
    assert "\nmodelyard_sequences_waiting" not in text
    assert "python_gc" not in text


async def test_quotas_are_counted_for_all_tenants_together() -> None:
    tallies = {
        ("alpha", "generator"): Tally(3, 1, 0, 100, 50),
        ("beta", "generator"): Tally(2, 0, 4, 10, 5),
        ("beta", "small"): Tally(7),
    }
    text = (await ProcessMetrics("a", "r", SECRET, QuotaMetrics(lambda: tallies)).read()).text
    assert 'modelyard_quota_admitted_total{kind="generator"} 5.0' in text
    assert 'modelyard_quota_admitted_total{kind="small"} 7.0' in text
    assert 'modelyard_quota_refused_total{kind="generator"} 1.0' in text
    assert 'modelyard_quota_would_refuse_total{kind="generator"} 4.0' in text
    settled = 'modelyard_quota_settled_tokens_total{direction="output",kind="generator"} 55.0'
    assert settled in text
    assert "alpha" not in text
