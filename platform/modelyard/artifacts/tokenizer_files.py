"""What a folder's tokenizer files say: how many tokens, how high their ids, which template."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from modelyard.artifacts.json_file import read_object
from modelyard.contract.errors import ArtifactError

TOKENIZER_NAME: Final = "tokenizer.json"
TOKENIZER_CONFIG_NAME: Final = "tokenizer_config.json"
TEMPLATE_NAME: Final = "chat_template.jinja"


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """size: tokens with those added. highest_id: it may be above `size` where ids have gaps."""

    size: int
    highest_id: int


def read_vocabulary(folder: Path) -> Vocabulary:
    """Raises ArtifactError when tokenizer.json is missing or no tokenizer."""
    from tokenizers import Tokenizer

    path = folder / TOKENIZER_NAME
    if not path.is_file():
        raise ArtifactError(
            f"{path}: expected a tokenizer, got no file: save it in the fast format "
            "(`AutoTokenizer.from_pretrained(...).save_pretrained(...)`), which is the same for "
            "every engine"
        )
    try:
        ids: dict[str, int] = Tokenizer.from_file(str(path)).get_vocab(with_added_tokens=True)
    # The library raises bare Exception for whatever it cannot parse.
    except Exception as error:
        raise ArtifactError(
            f"{path}: expected a tokenizer, got {error}: fetch the model again"
        ) from error
    if not ids:
        raise ArtifactError(f"{path}: the tokenizer holds no token: fetch the model again")
    return Vocabulary(len(ids), max(ids.values()))


def read_template(folder: Path) -> str | None:
    """The chat template's text, from chat_template.jinja or else tokenizer_config.json.

    That order is transformers': the file wins. Of several named ones, the one called default.
    """
    path = folder / TEMPLATE_NAME
    if path.is_file():
        try:
            # Not as text: on Windows' line ends the digest would be of other bytes than the file's.
            return path.read_bytes().decode()
        except (OSError, UnicodeDecodeError) as error:
            raise ArtifactError(
                f"{path}: expected a template, got {error}: fetch the model again"
            ) from error
    config = folder / TOKENIZER_CONFIG_NAME
    kept: Any = read_object(config).get("chat_template") if config.is_file() else None
    if kept is None or isinstance(kept, str):
        return kept
    named = _named(kept)
    if named is None:
        raise ArtifactError(
            f"{config}: chat_template: expected one template as text, got {type(kept).__name__}: "
            f"keep the one that is served, as {TEMPLATE_NAME}"
        )
    return named


def _named(kept: Any) -> str | None:
    """transformers' list of {name, template}: the one called `default` is used without a name."""
    if isinstance(kept, list):
        for one in kept:
            if isinstance(one, dict) and one.get("name") == "default":
                template = one.get("template")
                return template if isinstance(template, str) else None
    return None


def template_digest(folder: Path) -> str | None:
    """sha256 of the template's bytes as UTF-8, line ends as they are."""
    template = read_template(folder)
    if template is None:
        return None
    try:
        return hashlib.sha256(template.encode()).hexdigest()
    except UnicodeEncodeError as error:
        raise ArtifactError(
            f"{folder}: the chat template holds half of a character ({error.reason}): fetch the "
            "model again"
        ) from error
