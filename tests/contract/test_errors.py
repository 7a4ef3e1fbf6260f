import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelyard.contract import errors
from modelyard.contract.errors import (
    ArtifactError,
    ConfigError,
    Failure,
    Internal,
    ModelyardError,
    RequestError,
    from_failure,
)

# class: status, code, retryable, OpenAI's type, OpenAI's code
EXPECTED = {
    "InvalidRequest": (400, "invalid_request", False, "invalid_request_error", None),
    "MethodNotAllowed": (405, "invalid_request", False, "invalid_request_error", None),
    "BodyTooLarge": (413, "invalid_request", False, "invalid_request_error", None),
    "UnsupportedMedia": (415, "invalid_request", False, "invalid_request_error", None),
    "Unauthenticated": (401, "unauthenticated", False, "authentication_error", "invalid_api_key"),
    "Forbidden": (403, "forbidden", False, "permission_error", "permission_denied"),
    "NotFound": (404, "not_found", False, "invalid_request_error", "not_found"),
    "RateLimited": (429, "rate_limited", True, "rate_limit_error", "rate_limit_exceeded"),
    "Overloaded": (503, "overloaded", True, "server_error", "overloaded"),
    "DeadlineExceeded": (504, "deadline_exceeded", False, "server_error", "deadline_exceeded"),
    "ReplicaFailed": (502, "replica_failed", True, "server_error", "replica_failed"),
    "Internal": (500, "internal", False, "server_error", "internal"),
}
CODES = sorted({code for _, code, *_ in EXPECTED.values()})


def subclasses(cls: type[RequestError]) -> set[type[RequestError]]:
    below = set(cls.__subclasses__())
    return below.union(*(subclasses(one) for one in below))


def test_every_request_error_is_in_this_table() -> None:
    ours = {cls for cls in subclasses(RequestError) if cls.__module__ == errors.__name__}
    assert {cls.__name__ for cls in ours} == {*EXPECTED, "ReplicaDied"}


def test_a_death_is_a_failure_of_its_replica_that_says_which() -> None:
    died = errors.ReplicaDied("the replica died", replica="a1")
    assert isinstance(died, errors.ReplicaFailed)
    assert (died.replica, died.reason, died.retryable) == ("a1", "replica_died", True)


@pytest.mark.parametrize("name", EXPECTED)
def test_a_class_carries_its_status_code_and_openai_words(name: str) -> None:
    status, code, retryable, openai_type, openai_code = EXPECTED[name]
    error = getattr(errors, name)("wrong: do something else")
    assert isinstance(error, RequestError)
    assert (error.status, error.code, error.retryable) == (status, code, retryable)
    assert (error.openai_type, error.wire_code) == (openai_type, openai_code)
    assert (error.message, str(error)) == ("wrong: do something else",) * 2
    assert (error.reason, error.param, error.retry_after_s) == (code, None, None)


@pytest.mark.parametrize("cls", [ConfigError, ArtifactError])
def test_errors_for_operators_are_never_sent_to_a_caller(cls: type[ModelyardError]) -> None:
    assert issubclass(cls, ModelyardError)
    assert not issubclass(cls, RequestError)


@pytest.mark.parametrize("name", EXPECTED)
def test_an_instance_overrides_what_its_class_says(name: str) -> None:
    error = getattr(errors, name)(
        "m", param="p", reason="r", wire_code="w", retryable=True, retry_after_s=2.5
    )
    assert (error.param, error.reason, error.wire_code) == ("p", "r", "w")
    assert (error.retryable, error.retry_after_s) == (True, 2.5)


FAILURES = st.builds(
    Failure,
    code=st.sampled_from(CODES),
    message=st.text(),
    param=st.none() | st.text(min_size=1),
    reason=st.none() | st.text(min_size=1),
    wire_code=st.none() | st.text(min_size=1),
    retryable=st.none() | st.booleans(),
    retry_after_s=st.none() | st.floats(0, 1000),
)


@given(failure=FAILURES)
def test_a_failure_survives_the_way_through_an_exception(failure: Failure) -> None:
    error = from_failure(failure)
    back = error.failure()
    assert (error.code, error.message) == (failure.code, failure.message)
    assert back.param == failure.param
    assert back.reason == (failure.reason or failure.code)
    assert back.wire_code == (failure.wire_code or type(error).openai_code)
    assert back.retryable is (
        type(error).retryable_by_default if failure.retryable is None else failure.retryable
    )
    assert back.retry_after_s == failure.retry_after_s
    assert from_failure(back).failure() == back


@given(code=st.text().filter(lambda text: text not in CODES))
def test_an_unknown_code_is_an_internal_error(code: str) -> None:
    error = from_failure(Failure(code=code, message="from a newer release"))
    assert type(error) is Internal
    assert (error.status, error.code, error.retryable) == (500, "internal", False)
