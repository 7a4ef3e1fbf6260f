"""A real model folder of some kilobytes: random weights that transformers and vLLM can load."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from safetensors.numpy import save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors

from modelyard.artifacts.manifest import Identity, Manifest
from modelyard.artifacts.package import write_manifest
from modelyard.contract.operations import Kind
from modelyard.testing.manifests import an_identity
from modelyard.testing.tiny_weights import (
    HEAD,
    HEADS,
    HIDDEN,
    INNER,
    KV_HEADS,
    ROWS,
    bert_tensors,
    llama_tensors,
)

TEMPLATE: Final = (
    "{% for message in messages %}[{{ message['role'] }}] {{ message['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}[assistant] {% endif %}"
)
_SPECIAL: Final = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_CLS, _SEP = 2, 3


def write_tiny_model(
    folder: Path,
    *,
    name: str = "tiny",
    version: str = "1.0.0",
    kind: Kind = Kind.EMBEDDER,
    **identity_changes: Any,
) -> Manifest:
    """Fill `folder` (made if missing) and package it: the answer passes every check.

    identity_changes: fields of Identity, such as `limits=Limits(...)`. The position table is as
    long as limits.max_context_tokens. The same arguments give the same bytes.
    """
    identity = an_identity(name=name, version=version, kind=kind, **identity_changes)
    write_tiny_files(folder, identity)
    return write_manifest(folder, identity)


def write_tiny_files(folder: Path, identity: Identity) -> None:
    """The same folder without its manifest."""
    folder.mkdir(parents=True, exist_ok=True)
    generator = identity.kind is Kind.GENERATOR
    tensors = llama_tensors() if generator else bert_tensors(identity)
    config = _llama_config(identity) if generator else _bert_config(identity)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    _write_json(folder / "config.json", config)
    _tokenizer(wrap=not generator).save(str(folder / "tokenizer.json"))
    special = dict(zip(("pad", "unk", "cls", "sep", "mask"), _SPECIAL, strict=True))
    named = {f"{use}_token": token for use, token in special.items()}
    if generator:
        named |= {"bos_token": "[CLS]", "eos_token": "[SEP]"}
        (folder / "chat_template.jinja").write_text(TEMPLATE)
    limit = identity.limits.max_context_tokens
    record = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": limit, **named}
    _write_json(folder / "tokenizer_config.json", record)


def _write_json(path: Path, record: dict[str, Any]) -> None:
    path.write_text(json.dumps(record, indent=2, sort_keys=True) + "\n")


def _tokenizer(*, wrap: bool) -> Tokenizer:
    """One token a byte. wrap: [CLS] and [SEP] around each text, as BERT has it."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: index for index, token in enumerate((*_SPECIAL, *alphabet))}
    made = Tokenizer(models.BPE(vocab=vocabulary, merges=[], unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens([AddedToken(token, special=True) for token in _SPECIAL])
    if wrap:
        made.post_processor = processors.BertProcessing(("[SEP]", _SEP), ("[CLS]", _CLS))
    return made


def _llama_config(identity: Identity) -> dict[str, Any]:
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "dtype": "float32",
        "hidden_act": "silu",
        "hidden_size": HIDDEN,
        "head_dim": HEAD,
        "intermediate_size": INNER,
        "max_position_embeddings": identity.limits.max_context_tokens,
        "num_attention_heads": HEADS,
        "num_hidden_layers": 1,
        "num_key_value_heads": KV_HEADS,
        "rms_norm_eps": 1e-5,
        "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"},
        "tie_word_embeddings": True,
        "vocab_size": ROWS,
        "bos_token_id": _CLS,
        "eos_token_id": _SEP,
        "pad_token_id": 0,
    }


def _bert_config(identity: Identity) -> dict[str, Any]:
    labels: dict[str, Any] = {}
    if identity.kind is Kind.CLASSIFIER:
        names = dict(enumerate(identity.labels))
        labels = {
            "id2label": {str(index): name for index, name in names.items()},
            "label2id": {name: index for index, name in names.items()},
            "problem_type": "single_label_classification",
        }
    family = "BertForSequenceClassification" if labels else "BertModel"
    return {
        "architectures": [family],
        "model_type": "bert",
        "dtype": "float32",
        "hidden_act": "gelu",
        "hidden_size": HIDDEN,
        "intermediate_size": INNER,
        "layer_norm_eps": 1e-12,
        "max_position_embeddings": identity.limits.max_context_tokens,
        "num_attention_heads": HEADS,
        "num_hidden_layers": 1,
        "pad_token_id": 0,
        "position_embedding_type": "absolute",
        "type_vocab_size": 2,
        "vocab_size": ROWS,
        **labels,
    }
