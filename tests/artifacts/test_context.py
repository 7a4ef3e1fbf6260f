from pathlib import Path
from typing import Any

import pytest

from modelyard.artifacts.context import longest_context
from modelyard.artifacts.model_config import ModelConfig
from modelyard.contract.errors import ArtifactError


def config(**record: Any) -> ModelConfig:
    return ModelConfig(Path("config.json"), record, record)


def test_a_roberta_loses_the_rows_up_to_its_padding() -> None:
    assert longest_context(config(model_type="xlm-roberta", max_position_embeddings=514)) == 512
    padded = config(model_type="roberta", max_position_embeddings=514, pad_token_id=0)
    assert longest_context(padded) == 513


@pytest.mark.parametrize("padding", [0, 1, 5])
def test_an_mpnet_pads_by_1_whatever_it_says(padding: int) -> None:
    said = config(model_type="mpnet", max_position_embeddings=514, pad_token_id=padding)
    assert longest_context(said) == 512


def test_a_config_without_a_length_has_no_limit() -> None:
    assert longest_context(config(model_type="bloom")) is None


def test_the_shortest_of_several_lengths_counts() -> None:
    assert longest_context(config(max_position_embeddings=4096, max_seq_len=2048)) == 2048


@pytest.mark.parametrize("factor", [0.5, "two", True, float("nan"), float("inf")])
def test_a_factor_that_is_none_is_refused(factor: object) -> None:
    scaled = config(max_position_embeddings=8, rope_scaling={"type": "linear", "factor": factor})
    with pytest.raises(ArtifactError, match=r"rope_scaling\.factor: expected a number"):
        longest_context(scaled)
