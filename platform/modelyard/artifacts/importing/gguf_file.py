"""A GGUF file as a standard Hugging Face folder: bf16 safetensors, config and tokenizer.

Dequantised weights stay what the quantisation left of them: no precision comes back.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from modelyard.artifacts import gguf_fields, gguf_llama, gguf_tokenizer
from modelyard.artifacts.importing.copying import copy_files, file_errors_named, require_room
from modelyard.artifacts.importing.selection import TOKENIZER, TOKENIZER_FILES
from modelyard.artifacts.starter.folder import open_modes, remove_noise, write_json
from modelyard.artifacts.starter.quiet import quiet_transformers
from modelyard.artifacts.tokenizer_files import TEMPLATE_NAME, read_template
from modelyard.contract.errors import ArtifactError

if TYPE_CHECKING:
    from gguf import GGUFReader

_BF16_BYTES: Final = 2
_TEMPLATE: Final = "tokenizer.chat_template"


def write_folder(path: Path, target: Path, tokenizer: Path | None) -> str | None:
    """Fill `target` from the file at `path`; answer the license that it names, or None.

    tokenizer: a folder with the original model's tokenizer.json, for a file whose own cannot be
    read back exactly. Raises ArtifactError for a file that is cut, and for an architecture or a
    tokenizer that cannot be read.
    """
    reader = _open(path)
    architecture = gguf_fields.text(reader, "general.architecture")
    _require_readable(path, architecture)
    require_room(target, sum(int(one.n_elements) for one in reader.tensors) * _BF16_BYTES)
    with file_errors_named(target):
        _write_tokenizer(reader, path, target, tokenizer)
        if architecture == "llama":
            _write_llama(reader, target)
        else:
            _write_by_transformers(path, target)
        open_modes(target)
    license_ = gguf_fields.find(reader, "general.license")
    return license_ if isinstance(license_, str) else None


def _open(path: Path) -> GGUFReader:
    from gguf import GGUFReader

    try:
        return GGUFReader(path)
    # The library raises whatever numpy does for a count or an offset that is damaged.
    except Exception as error:
        raise ArtifactError(
            f"{path}: cannot be read as GGUF ({_first_line(error)}): it was cut short or is of "
            "another format"
        ) from error


def _write_llama(reader: GGUFReader, target: Path) -> None:
    from safetensors.torch import save_file

    tensors = gguf_llama.weights(reader)
    save_file(tensors, target / "model.safetensors", metadata={"format": "pt"})
    write_json(target / "config.json", gguf_llama.config(reader))
    write_json(target / "generation_config.json", gguf_tokenizer.token_ids(reader))


def _require_readable(path: Path, architecture: str) -> None:
    from transformers.modeling_gguf_pytorch_utils import GGUF_SUPPORTED_ARCHITECTURES

    if architecture not in ("llama", *GGUF_SUPPORTED_ARCHITECTURES):
        raise ArtifactError(
            f"{path}: neither modelyard nor transformers reads GGUF files of {architecture}: "
            "import the model's original folder, or org/name@revision"
        )


def _write_by_transformers(path: Path, target: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, GgufConfig

    family: Any = AutoModelForCausalLM
    with tempfile.TemporaryDirectory() as alone, quiet_transformers():
        # Alone in a folder: beside a config.json transformers would believe that one.
        Path(alone, path.name).symlink_to(path.absolute())
        try:
            model, report = family.from_pretrained(
                alone,
                gguf_file=path.name,
                quantization_config=GgufConfig(dequantize=True),
                dtype=torch.bfloat16,
                output_loading_info=True,
                local_files_only=True,
            )
        # It reads every field of the file without looking, and raises what comes of it.
        except Exception as error:
            raise ArtifactError(
                f"{path}: transformers cannot read it ({_first_line(error)}): import the original "
                "folder"
            ) from error
        if missing := sorted(report["missing_keys"]):
            raise ArtifactError(
                f"{path}: transformers finds no {missing[0]} in it: import the original folder"
            )
        model.save_pretrained(target)
    remove_noise(target)


def _first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


def _write_tokenizer(reader: GGUFReader, path: Path, target: Path, tokenizer: Path | None) -> None:
    if tokenizer is not None:
        _require_same_tokens(reader, path, tokenizer)
        copy_files(
            tokenizer, [one for one in TOKENIZER_FILES if (tokenizer / one).is_file()], target
        )
    else:
        made = gguf_fields.find(reader, "tokenizer.ggml.model")
        splits = gguf_fields.find(reader, "tokenizer.ggml.pre")
        if (made, splits) != ("gpt2", "smollm"):
            raise ArtifactError(
                f"{path}: its tokenizer ({made}, split as {splits}) cannot be read back exactly, "
                "and other splits give other token ids: say --tokenizer FOLDER, with the "
                f"{TOKENIZER} of the original model"
            )
        gguf_tokenizer.tokenizer(reader).save(str(target / TOKENIZER))
        write_json(target / "tokenizer_config.json", gguf_tokenizer.tokenizer_config(reader))
    if gguf_fields.find(reader, _TEMPLATE) is not None and read_template(target) is None:
        template = gguf_fields.text(reader, _TEMPLATE)
        (target / TEMPLATE_NAME).write_text(template, encoding="utf-8")


def _require_same_tokens(reader: GGUFReader, path: Path, folder: Path) -> None:
    from tokenizers import Tokenizer

    if not (folder / TOKENIZER).is_file():
        raise ArtifactError(f"{folder}: --tokenizer needs a folder with a {TOKENIZER}")
    tokens = gguf_fields.texts(reader, "tokenizer.ggml.tokens")
    try:
        theirs = Tokenizer.from_file(str(folder / TOKENIZER)).get_vocab(with_added_tokens=True)
    # The library raises bare Exception for whatever it cannot parse.
    except Exception as error:
        raise ArtifactError(
            f"{folder / TOKENIZER}: expected a tokenizer, got {error}: fetch it again"
        ) from error
    for token, index in sorted(theirs.items(), key=lambda one: one[1]):
        held = tokens[index] if index < len(tokens) else "no token"
        if held != token:
            raise ArtifactError(
                f"{folder / TOKENIZER}: token {index} is {token!r}, and {path.name} has {held!r} "
                "there: give the tokenizer of the model that the file was made from"
            )
