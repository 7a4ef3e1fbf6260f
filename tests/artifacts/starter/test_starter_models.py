"""The four models as they are made from their packages, loaded by the stock libraries."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from modelyard.artifacts.contents import verify_contents
from modelyard.artifacts.manifest import read_manifest
from modelyard.artifacts.starter import classifier, embedder, generator, reranker
from modelyard.artifacts.starter.prepare import RECIPES, prepare
from modelyard.artifacts.starter.recipe import Recipe
from modelyard.artifacts.verify import verify
from modelyard.contract.operations import Kind


def prepared(tmp_path: Path, recipe: Recipe) -> Path:
    folder = prepare(tmp_path, recipe).folder
    manifest = read_manifest(folder)
    verify(folder, manifest)
    verify_contents(folder, manifest)
    return folder


def digest_of_another_run(tmp_path: Path, recipe: Recipe) -> str:
    return prepare(tmp_path / "again", recipe).manifest.digest()


def predictions(folder: Path, texts: Sequence[str]) -> list[str]:
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    model: Any = AutoModelForSequenceClassification.from_pretrained(folder, dtype=torch.bfloat16)
    with torch.no_grad():
        logits = model(**tokenizer(texts, padding=True, return_tensors="pt")).logits
    return [model.config.id2label[index] for index in logits.argmax(-1).tolist()]


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.name)
def test_known_answers_ship_for_each(recipe: Recipe) -> None:
    golden = recipe.golden()
    assert golden is not None
    assert json.loads(golden)["prompts"]


def test_the_embedder_is_the_packages_weights_and_cuts_no_text(tmp_path: Path) -> None:
    from tokenizers import Tokenizer

    folder = prepared(tmp_path, embedder.RECIPE)
    manifest = read_manifest(folder)
    assert (manifest.kind, manifest.limits.max_context_tokens) == (Kind.EMBEDDER, 256)
    assert manifest.embedding_space == "all-minilm-l6-v2"
    assert manifest.warmup.golden_sha256 is not None
    shipped = embedder.RECIPE.source.file("model.safetensors")
    assert (folder / "model.safetensors").read_bytes() == shipped.read_bytes()
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    assert len(tokenizer.encode("hello").ids) == 3
    assert len(tokenizer.encode("hello " * 300).ids) == 302
    assert digest_of_another_run(tmp_path, embedder.RECIPE) == manifest.digest()


@pytest.mark.slow
def test_the_classifier_reaches_its_accuracy_as_a_standard_folder(tmp_path: Path) -> None:
    folder = prepared(tmp_path, classifier.RECIPE)
    manifest = read_manifest(folder)
    assert manifest.measured["accuracy"] >= classifier.MIN_ACCURACY
    texts = ["Where is my parcel?", "I forgot my password", "Connect me to a human, please"]
    answers = ["order_status", "account_access", "human_agent"]
    assert predictions(folder, texts) == answers
    assert set(answers) < set(manifest.labels)
    assert digest_of_another_run(tmp_path, classifier.RECIPE) == manifest.digest()


@pytest.mark.slow
def test_the_reranker_reaches_its_ndcg_and_names_its_kind(tmp_path: Path) -> None:
    manifest = read_manifest(prepared(tmp_path, reranker.RECIPE))
    assert manifest.score_kind in ("bi-encoder", "late-interaction")
    assert manifest.measured[f"ndcg_at_5.{manifest.score_kind}"] >= reranker.MIN_NDCG_AT_5
    assert set(manifest.measured) == {"ndcg_at_5.bi-encoder", "ndcg_at_5.late-interaction"}
    assert digest_of_another_run(tmp_path, reranker.RECIPE) == manifest.digest()


@pytest.mark.slow
def test_the_generator_knows_the_capital_of_france(tmp_path: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = prepared(tmp_path, generator.RECIPE)
    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    model: Any = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16)
    question = [{"role": "user", "content": "What is the capital of France?"}]
    prompt = tokenizer.apply_chat_template(
        question, add_generation_prompt=True, return_tensors="pt", return_dict=True
    )
    answer = model.generate(**prompt, max_new_tokens=16, do_sample=False)[0]
    text = tokenizer.decode(answer[prompt["input_ids"].shape[1] :], skip_special_tokens=True)
    assert text == "The capital of France is Paris."


@pytest.mark.slow
def test_the_generator_has_the_weights_that_transformers_reads_from_the_same_file(
    tmp_path: Path,
) -> None:
    import torch
    from safetensors.torch import load_file
    from transformers import AutoModelForCausalLM, GgufConfig

    folder = prepared(tmp_path, generator.RECIPE)
    gguf = generator.SOURCE.file(generator.GGUF)
    loaded: Any = AutoModelForCausalLM.from_pretrained(
        gguf.parent,
        gguf_file=gguf.name,
        dtype=torch.bfloat16,
        quantization_config=GgufConfig(dequantize=True),
    )
    expected = loaded.state_dict()
    ours = load_file(folder / "model.safetensors")
    assert expected.keys() - ours.keys() == {"lm_head.weight"}  # tied to the embedding
    assert all(torch.equal(expected[name], tensor) for name, tensor in ours.items())
    assert digest_of_another_run(tmp_path, generator.RECIPE) == read_manifest(folder).digest()
