import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from modelyard.artifacts.importing.importer import Imported
from modelyard.contract.errors import ArtifactError

Import = Callable[..., Imported]

RANK, ALPHA = 4, 12
Q = "model.layers.0.self_attn.q_proj"


def write_adapter(folder: Path, module: str = Q, *, size: int = 32, **config: Any) -> Path:
    """A LoRA of one matrix, in the files that peft writes; written without it."""
    folder.mkdir()
    draw = np.random.default_rng(7)
    tensors = {
        f"base_model.model.{module}.lora_A.weight": draw.normal(size=(RANK, size)),
        f"base_model.model.{module}.lora_B.weight": draw.normal(size=(size, RANK)),
    }
    save_file(
        {name: values.astype(np.float32) for name, values in tensors.items()},
        folder / "adapter_model.safetensors",
    )
    record = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": "org/base",
        "r": RANK,
        "lora_alpha": ALPHA,
        "target_modules": ["q_proj"],
        "layers_to_transform": [0],
    }
    (folder / "adapter_config.json").write_text(json.dumps(record | config))
    (folder / "README.md").write_text("---\nlicense: apache-2.0\n---\n")
    return folder


def test_the_merged_matrix_is_w_plus_alpha_over_r_b_a(
    bring: Import, llama: Path, tmp_path: Path, said: list[str]
) -> None:
    adapter = write_adapter(tmp_path / "lora")
    made = bring(adapter, base=str(llama))
    before, after = (
        load_file(llama / "model.safetensors"),
        load_file(made.folder / "model.safetensors"),
    )
    lora = load_file(adapter / "adapter_model.safetensors")
    down, up = (lora[f"base_model.model.{Q}.lora_{part}.weight"] for part in "AB")
    expected = before[f"{Q}.weight"] + ALPHA / RANK * up @ down
    np.testing.assert_allclose(after[f"{Q}.weight"], expected, rtol=1e-5, atol=1e-6)
    assert after.keys() == before.keys()
    assert all(np.array_equal(after[n], before[n]) for n in before if n != f"{Q}.weight")
    assert made.manifest.source == "LoRA adapter lora merged into llama"
    assert made.manifest.license == "apache-2.0"
    assert any("trained on org/base" in line for line in said)


def test_the_sum_is_stored_as_the_base_is(bring: Import, llama: Path, tmp_path: Path) -> None:
    import torch
    from transformers import LlamaForCausalLM

    model: Any = LlamaForCausalLM.from_pretrained(llama, dtype=torch.bfloat16)
    model.save_pretrained(llama)
    made = bring(write_adapter(tmp_path / "lora"), base=str(llama))
    assert made.manifest.weights.dtype == "bfloat16"


def test_a_base_may_be_an_artifact(bring: Import, llama: Path, tmp_path: Path) -> None:
    base = bring(llama, name="base")
    adapter = write_adapter(tmp_path / "lora")
    (adapter / "README.md").unlink()
    uri = f"s3://bucket/{base.manifest.name}/1"
    made = bring(adapter, base=uri, fetch={uri: base.folder}.__getitem__)
    assert made.manifest.license == "mit"
    assert made.manifest.source == f"LoRA adapter lora merged into {uri}"


def test_the_adapters_own_tokenizer_is_taken(bring: Import, llama: Path, tmp_path: Path) -> None:
    adapter = write_adapter(tmp_path / "lora")
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (adapter / name).write_bytes((llama / name).read_bytes())
    (adapter / "chat_template.jinja").write_text("{{ messages }} as trained")
    made = bring(adapter, base=str(llama))
    assert (made.folder / "chat_template.jinja").read_text() == "{{ messages }} as trained"


def test_the_bases_generation_config_stays(bring: Import, llama: Path, tmp_path: Path) -> None:
    """One that transformers reads and does not write."""
    (llama / "generation_config.json").write_text('{"temperature": 0.3}')
    made = bring(write_adapter(tmp_path / "lora"), base=str(llama))
    saved = json.loads((made.folder / "generation_config.json").read_text())
    assert saved == {"temperature": 0.3}


def test_without_a_base_it_is_refused(bring: Import, tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match=r"a LoRA adapter of org/base.*say --base"):
        bring(write_adapter(tmp_path / "lora"))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"size": 16}, r"does not fit .*give the base it was trained on, org/base"),
        ({"target_modules": ["query_key_value"]}, r"does not fit .*query_key_value"),
        ({"module": "model.layers.0.self_attn.x_proj"}, r"does not fit .*missing adapter keys"),
        ({"peft_type": "PREFIX_TUNING"}, "a PREFIX_TUNING adapter cannot be merged"),
    ],
)
def test_an_adapter_of_another_model_is_refused(
    bring: Import, llama: Path, tmp_path: Path, options: dict[str, Any], words: str
) -> None:
    with pytest.raises(ArtifactError, match=words):
        bring(write_adapter(tmp_path / "lora", **options), base=str(llama))


@pytest.mark.parametrize("data", [b"", b"\x08" + b"\0" * 7 + b"{}", b"torn" * 9])
def test_a_damaged_adapter_is_refused_in_words(
    bring: Import, llama: Path, tmp_path: Path, data: bytes
) -> None:
    adapter = write_adapter(tmp_path / "lora")
    (adapter / "adapter_model.safetensors").write_bytes(data)
    with pytest.raises(ArtifactError, match=r"adapter_model.safetensors: expected a whole safe"):
        bring(adapter, base=str(llama))


def test_an_adapter_of_no_numbers_is_refused(bring: Import, llama: Path, tmp_path: Path) -> None:
    adapter = write_adapter(tmp_path / "lora")
    path = adapter / "adapter_model.safetensors"
    save_file({name: part * np.nan for name, part in load_file(path).items()}, path)
    with pytest.raises(ArtifactError, match=r"does not fit .*NaN"):
        bring(adapter, base=str(llama))


@pytest.mark.parametrize("field", ["r", "lora_alpha", "target_modules"])
def test_an_adapters_odd_config_is_refused(
    bring: Import, llama: Path, tmp_path: Path, field: str
) -> None:
    odd: dict[str, Any] = {field: {"a": [1]}}
    adapter = write_adapter(tmp_path / "lora", **odd)
    with pytest.raises(ArtifactError, match=r"does not fit "):
        bring(adapter, base=str(llama))


def test_a_base_whose_config_is_anothers_is_refused(
    bring: Import, llama: Path, tmp_path: Path
) -> None:
    record = json.loads((llama / "config.json").read_text())
    (llama / "config.json").write_text(json.dumps(record | {"vocab_size": 7}))
    with pytest.raises(ArtifactError, match=r"llama: transformers cannot load it \("):
        bring(write_adapter(tmp_path / "lora"), base=str(llama))


def test_a_pickled_adapter_is_refused_by_name(bring: Import, llama: Path, tmp_path: Path) -> None:
    adapter = write_adapter(tmp_path / "lora")
    (adapter / "adapter_model.safetensors").rename(adapter / "adapter_model.bin")
    with pytest.raises(ArtifactError, match=r"adapter_model.bin can run code"):
        bring(adapter, base=str(llama))


def test_quantised_weights_take_no_lora(bring: Import, llama: Path, tmp_path: Path) -> None:
    record = json.loads((llama / "config.json").read_text())
    record["quantization_config"] = {"quant_method": "fp8"}
    (llama / "config.json").write_text(json.dumps(record))
    with pytest.raises(ArtifactError, match="not merged into quantised weights"):
        bring(write_adapter(tmp_path / "lora"), base=str(llama))


def test_a_base_that_is_none_is_refused(bring: Import, tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match=r"--base nowhere: no such folder"):
        bring(write_adapter(tmp_path / "lora"), base="nowhere")
