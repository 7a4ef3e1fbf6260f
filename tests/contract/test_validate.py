import pytest
from pydantic import BaseModel, ConfigDict

from modelyard.contract.errors import InvalidRequest
from modelyard.contract.validate import validated, validated_json


class Model(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    count: int


def test_a_record_and_its_json_give_the_same_request() -> None:
    assert validated(Model, {"count": 3}) == validated_json(Model, b'{"count": 3}')


@pytest.mark.parametrize("record", [{"count": "secret"}, {}, {"count": 1.0}])
def test_the_field_is_named_and_its_value_is_not(record: dict[str, object]) -> None:
    with pytest.raises(InvalidRequest) as caught:
        validated(Model, record)
    assert caught.value.param == "count"
    assert "secret" not in caught.value.message


def test_an_unknown_field_is_named_and_cut() -> None:
    with pytest.raises(InvalidRequest) as caught:
        validated(Model, {"count": 1, "x" * 1000: 1})
    assert caught.value.param == "x" * 64


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b'{"count": "\\ud800"}'])
def test_what_is_no_json_object_is_a_request_error(body: bytes) -> None:
    with pytest.raises(InvalidRequest):
        validated_json(Model, body)
