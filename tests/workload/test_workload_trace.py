from pathlib import Path

import pytest

from modelyard.contract.errors import ConfigError
from modelyard.workload.trace import Recorded, read_trace

REAL = Path("/work/shared/data/azure-llm-2023-conv.csv")


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "t.csv"
    path.write_text(text)
    return path


def test_rows_are_read_and_put_in_order_of_time(tmp_path: Path) -> None:
    path = written(tmp_path, "offset_s,input_tokens,output_tokens\n2.5,10,3\n1,20,4\n")
    assert read_trace(path).requests == (Recorded(1.0, 20, 4), Recorded(2.5, 10, 3))
    assert len(read_trace(path).sha256) == 64


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("offset_s,input_tokens\n1,2\n", "the column output_tokens is missing"),
        ("", "is missing"),
        ("offset_s,input_tokens,output_tokens\n", "holds no request"),
        ("offset_s,input_tokens,output_tokens\n1,x,3\n", r"t\.csv:2: .*each column must hold"),
        ("offset_s,input_tokens,output_tokens\nnan,1,3\n", r"t\.csv:2: "),
        ("offset_s,input_tokens,output_tokens\n1,1,-3\n", r"t\.csv:2: "),
        ("offset_s,input_tokens,output_tokens\n1,1\n", r"t\.csv:2: "),
        ("offset_s,input_tokens,output_tokens\n0,999999999999,1\n", r"t\.csv:2: .*1000000 tokens"),
        ("offset_s,input_tokens,output_tokens\n1e300,1,1\n", r"t\.csv:2: more than a year"),
    ],
)
def test_a_faulty_file_is_named_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        read_trace(written(tmp_path, text))


def test_a_missing_file_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        read_trace(tmp_path / "none.csv")


def test_a_part_of_a_trace_begins_at_zero_and_must_hold_something(tmp_path: Path) -> None:
    trace = read_trace(
        written(tmp_path, "offset_s,input_tokens,output_tokens\n1,1,1\n4,2,2\n9,3,3\n")
    )
    assert [one.offset_s for one in trace.since(4).requests] == [0, 5]
    with pytest.raises(ConfigError, match="the trace ends at 9 s"):
        trace.since(10)


@pytest.mark.skipif(not REAL.exists(), reason="the Azure trace is not on this machine")
def test_the_azure_trace_is_read_whole() -> None:
    trace = read_trace(REAL)
    assert len(trace.requests) == 19_366
    assert trace.requests[0] == Recorded(0.0, 374, 44)
