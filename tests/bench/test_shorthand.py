from pathlib import Path

import pytest

from modelyard.bench.shorthand import parse_keys, parse_lengths, parse_rates, parse_steps
from modelyard.contract.errors import ConfigError
from modelyard.workload.arrivals import Step
from modelyard.workload.lengths import Lengths


@pytest.mark.parametrize(
    ("text", "rates"),
    [("5", (5,)), ("1,2,4", (1, 2, 4)), ("1:3:0.5", (1, 1.5, 2, 2.5, 3)), ("1:2:3", (1,))],
)
def test_rates(text: str, rates: tuple[float, ...]) -> None:
    assert parse_rates(text) == rates


@pytest.mark.parametrize(
    "text", ["", "0", "x", "2,1", "1,1", "nan", "inf", "1:2", "2:1:1", "1:2:0", "-1", "1:2:-1"]
)
def test_no_rates(text: str) -> None:
    with pytest.raises(ConfigError, match="is no rising list of rates"):
        parse_rates(text)


def test_too_many_rates() -> None:
    with pytest.raises(ConfigError, match="more than 100 rates"):
        parse_rates("1:100000:0.001")


def test_steps_and_ramps() -> None:
    assert parse_steps("26@120,14@180") == (
        Step(rate_per_s=26, for_s=120),
        Step(rate_per_s=14, for_s=180),
    )
    assert parse_steps("5-50@60") == (Step(rate_per_s=5, to_per_s=50, for_s=60),)


@pytest.mark.parametrize("text", ["", "26", "26@", "a@b", "1@0", "1..2@3", "1@2,"])
def test_no_steps(text: str) -> None:
    with pytest.raises(ConfigError, match="is no step: write RATE@SECONDS"):
        parse_steps(text)


@pytest.mark.parametrize(
    ("text", "record"),
    [
        ("128", {"fixed": 128}),
        ("uniform:10,200", {"uniform": {"low": 10, "high": 200}}),
        ("lognormal:120,0.8", {"lognormal": {"median": 120, "sigma": 0.8}}),
        ("lognormal:120,0.8,512", {"lognormal": {"median": 120, "sigma": 0.8, "max": 512}}),
        ("trace:a:b.csv", {"trace": {"file": "a:b.csv", "column": "input_tokens"}}),
    ],
)
def test_lengths(text: str, record: dict[str, object]) -> None:
    assert parse_lengths("--x", text, "input_tokens") == Lengths.model_validate(record)


@pytest.mark.parametrize("text", ["", "0", "x", "uniform:5", "uniform:5,1", "normal:1,2", "trace:"])
def test_no_lengths(text: str) -> None:
    with pytest.raises(ConfigError, match="is no length: write 128"):
        parse_lengths("--x", text, "input_tokens")


def test_keys_by_tenant_and_from_files(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("my_secret\n")
    keys = parse_keys(["plain", "demo=my_demo-1_x", f"nightly=@{file}"])
    assert keys == {"": "plain", "demo": "my_demo-1_x", "nightly": "my_secret"}
    assert parse_keys(["padded=="]) == {"padded": "="}


def test_faulty_keys_are_not_repeated_in_the_message(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="twice for demo"):
        parse_keys(["demo=a", "demo=b"])
    with pytest.raises(ConfigError, match="cannot be read"):
        parse_keys([f"@{tmp_path}/none"])
    with pytest.raises(ConfigError, match="no printable text") as caught:
        parse_keys(["demo=sec\nret"])
    assert "ret" not in str(caught.value)
