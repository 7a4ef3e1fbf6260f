import pytest
from pydantic import ValidationError

from modelyard.config.tunables import BatchTunables


def test_batches_wait_for_nobody_by_default() -> None:
    assert BatchTunables() == BatchTunables(max_batch_size=32, max_batch_tokens=8192, max_wait_ms=0)


@pytest.mark.parametrize(
    "record", [{"max_batch_size": 0}, {"max_batch_tokens": 0}, {"max_wait_ms": -1}, {"wait": 1}]
)
def test_impossible_tunables_are_refused(record: dict[str, int]) -> None:
    with pytest.raises(ValidationError):
        BatchTunables.model_validate(record)
