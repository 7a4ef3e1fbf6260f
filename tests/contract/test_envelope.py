import pickle
from dataclasses import FrozenInstanceError

import pytest

from modelyard.contract.envelope import Envelope, Failure, Item, Usage

ENVELOPE = Envelope(
    claim="c",
    version="m@1",
    operation="chat",
    body=b"{}",
    stream=True,
    budget_ms=1000,
    band="interactive",
    request_id="r",
    answer_id="a",
    model_alias="m",
)


@pytest.mark.parametrize(
    "record", [ENVELOPE, Item(b"x", 1, Usage(1, 2)), Failure("internal", "m")], ids=repr
)
def test_what_crosses_processes_survives_pickling(record: object) -> None:
    assert pickle.loads(pickle.dumps(record)) == record


def test_an_envelope_cannot_be_changed_on_its_way() -> None:
    with pytest.raises(FrozenInstanceError):
        ENVELOPE.claim = "another"  # type: ignore[misc]


def test_an_item_is_not_the_last_one_unless_it_says_so() -> None:
    assert Item(b"x") == (b"x", 0, None)
    assert Usage(1, 2) == (1, 2, "stop", 0)
