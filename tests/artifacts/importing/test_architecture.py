from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from modelyard.artifacts.importing.architecture import ENCODERS, Architecture
from modelyard.artifacts.importing.importer import Imported
from modelyard.batching.encode import Encoder
from modelyard.batching.tokens import Tokens
from modelyard.contract.errors import ArtifactError
from modelyard.contract.operations import Kind

SIZES: dict[str, Any] = {
    "vocab_size": 264,
    "embedding_size": 32,
    "hidden_size": 32,
    "dim": 32,
    "num_hidden_layers": 1,
    "n_layers": 1,
    "num_attention_heads": 2,
    "n_heads": 2,
    "intermediate_size": 48,
    "hidden_dim": 48,
    "max_position_embeddings": 40,
    "pad_token_id": 0,
    "bos_token_id": 2,
    "eos_token_id": 3,
    "cls_token_id": 2,
    "sep_token_id": 3,
}

# Of 40 rows, where those up to the padding token's belong to no position. MPNet's code takes that
# for 1, whatever its config says, which is 0 here.
LIMITS = dict.fromkeys(("camembert", "roberta", "xlm-roberta"), 39) | {"mpnet": 38}


def a(*names: str, model_type: str = "bert", **record: Any) -> Architecture:
    return Architecture({"architectures": list(names), "model_type": model_type, **record}, "m")


@pytest.mark.parametrize(
    ("name", "labels", "kind"),
    [
        ("LlamaForCausalLM", 2, Kind.GENERATOR),
        ("GPT2LMHeadModel", 2, Kind.GENERATOR),
        ("BertForSequenceClassification", 3, Kind.CLASSIFIER),
        ("BertForSequenceClassification", 1, Kind.RERANKER),
        ("BertModel", 2, Kind.EMBEDDER),
    ],
)
def test_the_class_tells_the_kind(name: str, labels: int, kind: Kind) -> None:
    names = {str(index): f"l{index}" for index in range(labels)}
    assert a(name, id2label=names).kind(sentence_model=False) is kind


def test_a_class_without_a_head_of_ours_is_asked_about() -> None:
    with pytest.raises(ArtifactError, match=r"BertForMaskedLM does not tell .*say --kind"):
        a("BertForMaskedLM").kind(sentence_model=False)
    assert a("BertForMaskedLM").kind(sentence_model=True) is Kind.EMBEDDER


def test_labels_are_in_the_order_of_the_head() -> None:
    names = {str(index): f"l{index}" for index in (10, 9, *range(9))}
    assert a("BertModel", id2label=names).labels == tuple(f"l{index}" for index in range(11))


@pytest.mark.parametrize(
    ("config", "kind", "cross_encoder", "words"),
    [
        (a("T5Model", model_type="t5"), Kind.EMBEDDER, False, "no embedder's shell runs T5Model"),
        (a("BertModel"), Kind.GENERATOR, False, "no head that writes text"),
        (a("BertModel"), Kind.CLASSIFIER, False, "a classifier needs"),
        (a("BertModel"), Kind.RERANKER, True, "a cross-encoder needs"),
        (a("BertForSequenceClassification"), Kind.RERANKER, True, "has 2 labels"),
        (a(model_type="bert"), Kind.EMBEDDER, True, "names no architectures"),
    ],
)
def test_what_no_shell_runs_is_refused_by_name(
    config: Architecture, kind: Kind, cross_encoder: bool, words: str
) -> None:
    with pytest.raises(ArtifactError, match=words):
        config.require_servable(kind, cross_encoder=cross_encoder)


@pytest.mark.parametrize(
    ("record", "words"),
    [
        ({"id2label": {"a": "x", "b": "y"}}, "id2label: expected an object"),
        ({"id2label": {"0": "x", "2": "y"}}, "id2label: expected an object"),
        ({"id2label": ["a", "b"]}, "id2label: expected an object"),
        ({"id2label": 3}, "id2label: expected an object"),
        ({"num_labels": "two"}, "num_labels: expected a number from 1 to 100000, got 'two'"),
        ({"num_labels": 10**12}, "num_labels: expected a number"),
        ({"architectures": {"a": 1}}, "names no architectures: write a list"),
        ({"architectures": "BertForSequenceClassification"}, "names no architectures"),
    ],
)
def test_a_damaged_config_is_refused_in_words(record: dict[str, Any], words: str) -> None:
    config = Architecture({"architectures": ["BertForSequenceClassification"]} | record, "m")
    with pytest.raises(ArtifactError, match=words):
        config.kind(sentence_model=False)


# transformers' DeBERTa still asks torch for it.
@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated:DeprecationWarning")
@pytest.mark.parametrize("model_type", sorted(ENCODERS))
def test_each_family_is_imported_and_run_up_to_its_limit(
    model_type: str, tmp_path: Path, bert: Path, bring: Callable[..., Imported]
) -> None:
    from transformers import AutoConfig, AutoModel

    kinds: Any = AutoConfig
    family: Any = AutoModel
    model = family.from_config(kinds.for_model(model_type, **SIZES))
    model.save_pretrained(tmp_path / "m")
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (tmp_path / "m" / name).write_bytes((bert / name).read_bytes())
    made = bring(tmp_path / "m", license="mit")
    limit = made.manifest.limits.max_context_tokens
    assert (made.manifest.kind, limit) == (Kind.EMBEDDER, LIMITS.get(model_type, 40))
    encoder = Encoder(made.folder, limit)
    hidden, mask = encoder.hidden([Tokens([2, *range(5, limit + 3), 3]), Tokens([2, 9, 3])])
    assert tuple(hidden.shape) == (2, limit, 32)
    assert mask.sum(-1).tolist() == [limit, 3]
    assert encoder.dimensions == 32
