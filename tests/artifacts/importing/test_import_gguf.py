from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer

from modelyard.artifacts.importing.importer import Imported
from modelyard.artifacts.starter import generator
from modelyard.contract.errors import ArtifactError
from tests.artifacts.importing.gguf_files import NAMES, a_model, write_gguf

Import = Callable[..., Imported]


def same_weights(folder: Path, model: Any) -> bool:
    import torch
    from transformers import AutoModelForCausalLM

    family: Any = AutoModelForCausalLM
    loaded = family.from_pretrained(folder, dtype=torch.float32).state_dict()
    expected = model.state_dict()
    return loaded.keys() == expected.keys() and all(
        torch.equal(loaded[name], expected[name]) for name in expected
    )


@pytest.mark.parametrize("tied", [True, False])
def test_a_llama_comes_back_as_it_was(bring: Import, tmp_path: Path, tied: bool) -> None:
    model = a_model("llama", tie_word_embeddings=tied, rope_theta=5000.0)
    made = bring(write_gguf(tmp_path / "m.gguf", model))
    assert same_weights(made.folder, model)
    manifest = made.manifest
    assert (manifest.license, manifest.source) == ("apache-2.0", "m.gguf")
    assert (manifest.weights.dtype, manifest.limits.max_context_tokens) == ("bfloat16", 64)
    assert manifest.tokenizer.chat_template_sha256 is not None
    tokenizer = Tokenizer.from_file(str(made.folder / "tokenizer.json"))
    assert tokenizer.encode("he 12").tokens == ["he", "\u0120", "1", "2"]


def test_another_tokenizer_is_asked_for_and_compared(
    bring: Import, tmp_path: Path, llama: Path
) -> None:
    path = write_gguf(tmp_path / "m.gguf", a_model("llama"), pre="llama-bpe")
    with pytest.raises(ArtifactError, match=r"\(gpt2, split as llama-bpe\).* say --tokenizer"):
        bring(path)
    made = bring(path, tokenizer=llama)
    assert (made.folder / "tokenizer.json").read_bytes() == (llama / "tokenizer.json").read_bytes()
    text = (llama / "tokenizer.json").read_text()
    (llama / "tokenizer.json").write_text(text.replace("[CLS]", "[BOS]"))
    with pytest.raises(ArtifactError, match=r"token 2 is '\[BOS\]', and m.gguf has '\[CLS\]'"):
        bring(path, tokenizer=llama, name="other")
    (llama / "tokenizer.json").write_text("{")
    with pytest.raises(ArtifactError, match=r"tokenizer.json: expected a tokenizer, got"):
        bring(path, tokenizer=llama, name="other")
    with pytest.raises(ArtifactError, match=r"needs a folder with a tokenizer.json"):
        bring(path, tokenizer=tmp_path, name="other")


def test_a_gguf_has_no_base_and_its_errors_name_it(bring: Import, tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "m.gguf", a_model("llama"))
    with pytest.raises(ArtifactError, match=r"m.gguf: --base is for a LoRA adapter"):
        bring(path, base="org/base@main")
    with pytest.raises(ArtifactError) as refused:
        bring(path, max_context_tokens=65)
    assert str(refused.value).startswith(f"{path}: config.json: --max-context-tokens: expected")


def test_other_architectures_are_read_by_transformers(
    bring: Import, tmp_path: Path, llama: Path
) -> None:
    model = a_model("qwen2", tie_word_embeddings=True)
    path = write_gguf(tmp_path / "q.gguf", model, "qwen2", pre="qwen2")
    made = bring(path, tokenizer=llama, runs="Qwen2ForCausalLM")
    assert same_weights(made.folder, model)


def test_an_architecture_that_nobody_reads_is_refused_by_name(
    bring: Import, tmp_path: Path
) -> None:
    path = write_gguf(tmp_path / "m.gguf", a_model("llama"), "dream")
    with pytest.raises(ArtifactError, match="GGUF files of dream: import the model's original"):
        bring(path)


def test_experts_are_refused_by_the_tensors_name(bring: Import, tmp_path: Path) -> None:
    model = a_model("llama")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(NAMES, "mlp.gate_proj", "ffn_gate_exps")
        path = write_gguf(tmp_path / "m.gguf", model)
    with pytest.raises(ArtifactError, match=r"a tensor blk.0.ffn_gate_exps.weight"):
        bring(path)


@pytest.mark.parametrize(
    ("merges", "words"),
    [
        (["he"], "merges: expected pairs of tokens, got 'he'"),
        (["h e e"], "merges: expected pairs of tokens"),
        (["no such"], "merges: expected pairs of tokens"),
    ],
)
def test_merges_that_are_none_are_refused(
    bring: Import, tmp_path: Path, merges: list[str], words: str
) -> None:
    path = write_gguf(tmp_path / "m.gguf", a_model("llama"), merges=merges)
    with pytest.raises(ArtifactError, match=words):
        bring(path)


def test_a_file_that_lacks_a_tensor_is_refused(
    bring: Import, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = a_model("llama")
    state = model.state_dict()
    del state["model.layers.1.mlp.up_proj.weight"]
    monkeypatch.setattr(model, "state_dict", lambda: state)
    path = write_gguf(tmp_path / "m.gguf", model)
    with pytest.raises(ArtifactError, match=r"has no model.layers.1.mlp.up_proj.weight"):
        bring(path)


def test_a_template_is_utf_8_whatever_the_locale(
    bring: Import, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "{{ 'Gr\u00fc\u00dfe' }}"
    path = write_gguf(tmp_path / "m.gguf", a_model("llama"), template=text)
    write = Path.write_text

    def write_in_c_locale(self: Path, data: str, encoding: str = "ascii") -> int:
        return write(self, data, encoding=encoding)

    monkeypatch.setattr(Path, "write_text", write_in_c_locale)
    folder = bring(path).folder
    assert (folder / "chat_template.jinja").read_bytes() == text.encode()


def test_a_file_that_was_cut_is_refused(bring: Import, tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "m.gguf", a_model("llama"))
    path.write_bytes(path.read_bytes()[:-1000])
    with pytest.raises(ArtifactError, match="cannot be read as GGUF"):
        bring(path)
    path.write_bytes(b"no GGUF at all")
    with pytest.raises(ArtifactError, match="cannot be read as GGUF"):
        bring(path)


@pytest.mark.slow
def test_the_real_smollm2_is_the_starter_model(bring: Import, tmp_path: Path) -> None:
    made = bring(generator.SOURCE.file(generator.GGUF))
    (tmp_path / "starter").mkdir()
    generator.build(tmp_path / "starter")
    for name in ("model.safetensors", "config.json", "tokenizer.json", "chat_template.jinja"):
        assert (made.folder / name).read_bytes() == (tmp_path / "starter" / name).read_bytes()
    assert made.manifest.limits.max_context_tokens == 8192
