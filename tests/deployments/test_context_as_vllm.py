"""Our reading of a model's context is vLLM's own: longer than that, an engine would not start."""

import json
from pathlib import Path
from typing import Any

import pytest

from modelyard.artifacts.context import longest_context
from modelyard.artifacts.model_config import read_model_config

PLAIN = {"model_type": "llama", "max_position_embeddings": 2048, "rope_theta": 10000.0}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 512}
LLAMA_3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 1024,
}
CONFIGS: dict[str, dict[str, Any]] = {
    "plain": PLAIN,
    "default": PLAIN | {"rope_parameters": {"rope_type": "default", "rope_theta": 1e4}},
    "linear": PLAIN | {"rope_scaling": {"rope_type": "linear", "factor": 4.0}},
    "linear by its old name": PLAIN | {"rope_scaling": {"type": "linear", "factor": 2.5}},
    "dynamic": PLAIN | {"rope_parameters": {"rope_type": "dynamic", "factor": 2.0}},
    "yarn": PLAIN | {"rope_scaling": YARN},
    "llama3": PLAIN | {"rope_scaling": LLAMA_3},
    "gpt2": {"model_type": "gpt2", "n_positions": 1024},
    "gemma3": {
        "model_type": "gemma3_text",
        "max_position_embeddings": 4096,
        "rope_scaling": {"rope_type": "linear", "factor": 8.0},
    },
    "mrope": {
        "model_type": "qwen2",
        "max_position_embeddings": 4096,
        "rope_scaling": {"type": "mrope", "mrope_section": [16, 24, 24]},
    },
}


def of_vllm(folder: Path) -> int:
    from vllm.config.model import _get_and_verify_max_len
    from vllm.transformers_utils.config import get_config
    from vllm.transformers_utils.model_arch_config_convertor import ModelArchConfigConvertorBase

    config = get_config(folder, trust_remote_code=False)
    text = config.get_text_config()
    return _get_and_verify_max_len(
        hf_config=text,
        model_arch_config=ModelArchConfigConvertorBase(config, text).convert(),
        tokenizer_config=None,
        max_model_len=None,
        disable_sliding_window=False,
        sliding_window=None,
    )


@pytest.mark.parametrize("name", CONFIGS)
def test_the_longest_context_is_vllms(name: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(CONFIGS[name]))
    assert longest_context(read_model_config(tmp_path)) == of_vllm(tmp_path)
