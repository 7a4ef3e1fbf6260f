from pathlib import Path

import pytest

from modelyard.config.settings import Settings
from modelyard.config.traces import TraceTarget
from modelyard.contract.errors import ConfigError

HOME = {"MODELYARD_HOME": "/home/of/modelyard"}


def test_traces_are_off_unless_asked_for() -> None:
    settings = Settings.from_environment(HOME)
    assert settings.traces is None
    assert Settings.from_environment(HOME | {"MODELYARD_TRACES": ""}).traces is None


def test_they_go_to_a_collector_or_a_folder() -> None:
    otlp = Settings.from_environment(HOME | {"MODELYARD_TRACES": "otlp:http://host:4318/"})
    assert otlp.traces == TraceTarget(url="http://host:4318")
    assert otlp.trace_ratio == 1.0
    file = Settings.from_environment(
        HOME | {"MODELYARD_TRACES": "file:/tmp/traces", "MODELYARD_TRACE_RATIO": "0.25"}
    )
    assert file.traces == TraceTarget(folder=Path("/tmp/traces"))
    assert file.trace_ratio == 0.25


@pytest.mark.parametrize("text", ["host:4318", "otlp:host:4318", "file:relative", "yes"])
def test_what_is_neither_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="MODELYARD_TRACES"):
        Settings.from_environment(HOME | {"MODELYARD_TRACES": text})


@pytest.mark.parametrize("text", ["1.5", "-1", "half", "nan"])
def test_a_ratio_is_a_number_from_0_to_1(text: str) -> None:
    with pytest.raises(ConfigError, match="MODELYARD_TRACE_RATIO"):
        Settings.from_environment(HOME | {"MODELYARD_TRACE_RATIO": text})
