"""A NaN is found wherever it is, in every type that has one."""

import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file

from modelyard.artifacts import finite
from modelyard.artifacts.finite import require_finite
from modelyard.contract.errors import ArtifactError

TYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.float8_e5m2]
NAME = "model.safetensors"


def write(folder: Path, *values: torch.Tensor) -> None:
    save_file({f"t{index}": value for index, value in enumerate(values)}, folder / NAME)


@pytest.mark.parametrize("dtype", [*TYPES, torch.float8_e4m3fn, torch.float8_e8m0fnu], ids=str)
def test_a_nan_of_every_type_is_found(dtype: torch.dtype, tmp_path: Path) -> None:
    values = torch.ones(8)
    write(tmp_path, values.to(dtype))
    require_finite(tmp_path, [NAME])
    values[5] = float("nan")
    write(tmp_path, values.to(dtype))
    with pytest.raises(ArtifactError, match=r"'t0': expected finite .* element 5 of \[8\]"):
        require_finite(tmp_path, [NAME])


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_an_infinity_and_the_largest_number_are_told_apart(
    dtype: torch.dtype, tmp_path: Path
) -> None:
    bounds = [torch.finfo(dtype).max, torch.finfo(dtype).min]
    largest = torch.tensor(bounds, dtype=torch.float64).to(dtype)
    write(tmp_path, largest)
    require_finite(tmp_path, [NAME])
    write(tmp_path, torch.tensor([float("-inf")], dtype=dtype))
    with pytest.raises(ArtifactError, match="NaN or infinity at element 0"):
        require_finite(tmp_path, [NAME])


def test_the_integers_of_quantised_weights_are_passed_over(tmp_path: Path) -> None:
    write(tmp_path, torch.full((4,), -1, dtype=torch.int32), torch.tensor([255]).to(torch.uint8))
    require_finite(tmp_path, [NAME])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
@given(place=st.integers(0, 2999), chunk=st.sampled_from([8, 64, 4096]))
def test_a_nan_is_found_wherever_it_is(place: int, chunk: int, tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(finite, "_CHUNK_BYTES", chunk)
        values = torch.zeros(3000, dtype=torch.bfloat16)
        values[place] = float("nan")
        write(tmp_path, torch.ones(3), values)
        with pytest.raises(ArtifactError, match=rf"'t1': .* element {place} of"):
            require_finite(tmp_path, [NAME])


def test_memory_stays_at_a_chunk_however_large_the_weights(tmp_path: Path) -> None:
    write(tmp_path, torch.from_numpy(np.zeros(20_000_000, np.float32)))  # 80 MB
    tracemalloc.start()
    require_finite(tmp_path, [NAME])
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak_bytes < 20_000_000
