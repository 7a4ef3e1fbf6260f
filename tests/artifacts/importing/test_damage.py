"""Files that are damaged give a sound version or an ArtifactError, and never anything else."""

import json
import shutil
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from modelyard.artifacts.contents import verify_contents
from modelyard.artifacts.importing.card import license_of
from modelyard.artifacts.importing.importer import Imported
from modelyard.artifacts.importing.pooling import require_mean_pooling
from modelyard.artifacts.verify import verify
from modelyard.contract.errors import ArtifactError
from tests.artifacts.importing.gguf_files import a_model, write_gguf

Import = Callable[..., Imported]
Damage = Callable[[bytes], bytes]

# A folder is damaged, tried, and mended again: the fixtures do not change from example to example.
few = settings(
    max_examples=50,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
ODD: Final[tuple[Any, ...]] = (
    None,
    "x",
    "",
    "2",
    -1,
    0,
    3,
    1.5,
    True,
    [],
    [None],
    {},
    {"a": 1},
    {"0": None},
    10**30,
    1e308,
    "\ud800",
)
CONFIG_KEYS: Final = (
    "architectures",
    "model_type",
    "id2label",
    "num_labels",
    "vocab_size",
    "hidden_size",
    "num_attention_heads",
    "max_position_embeddings",
    "pad_token_id",
    "rope_scaling",
    "text_config",
    "quantization_config",
    "dtype",
)
_fresh = count()


@pytest.fixture
def two_labels(classifier: Callable[..., Path]) -> Path:
    return classifier("no", "yes")


@pytest.fixture
def gguf(tmp_path: Path) -> Path:
    return write_gguf(tmp_path / "m.gguf", a_model("llama", num_hidden_layers=1))


def overwritten(places: st.SearchStrategy[int]) -> st.SearchStrategy[Damage]:
    """Some bytes become others, at these places."""
    edits = st.lists(st.tuples(places, st.integers(0, 255)), min_size=1, max_size=3)

    def damage(edits: list[tuple[int, int]]) -> Damage:
        def write(data: bytes) -> bytes:
            changed = bytearray(data)
            for place, value in edits:
                changed[place % len(changed)] = value
            return bytes(changed)

        return write

    return edits.map(damage)


ANYWHERE: Final = st.integers(0, 1 << 20)
BYTES: Final = overwritten(ANYWHERE) | ANYWHERE.map(
    lambda end: lambda data: data[: end % len(data)]
)
DEEP: Final = st.sampled_from([b"[" * 5_000, b'{"a":' * 5_000, b"", b"\xff\xfe"])


def sound_or_refused(bring: Import, source: Path, **options: Any) -> bool:
    """Was it made?"""
    try:
        made = bring(source, version=f"v{next(_fresh)}", license="mit", **options)
    except ArtifactError as error:
        refusal = str(error)
    else:
        verify(made.folder, made.manifest)
        verify_contents(made.folder, made.manifest)
        shutil.rmtree(made.folder)
        return True
    assert refusal.count("\n") == 0
    return False


def try_each(bring: Import, folder: Path, name: str, data: bytes) -> None:
    whole = (folder / name).read_bytes()
    (folder / name).write_bytes(data)
    try:
        sound_or_refused(bring, folder)
    finally:
        (folder / name).write_bytes(whole)


@few
@given(st.sampled_from(CONFIG_KEYS), st.sampled_from(ODD))
def test_an_odd_value_in_config_json(
    bring: Import, two_labels: Path, key: str, value: object
) -> None:
    folder = two_labels
    record = json.loads((folder / "config.json").read_bytes())
    try_each(bring, folder, "config.json", json.dumps(record | {key: value}).encode())


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "tokenizer_config.json"])
@few
@given(damage=BYTES | DEEP.map(lambda data: lambda _: data))
def test_damaged_bytes_of_a_small_file(
    bring: Import, llama: Path, name: str, damage: Damage
) -> None:
    try_each(bring, llama, name, damage((llama / name).read_bytes()))


@few
@given(damage=BYTES)
def test_a_damaged_card(bert: Path, damage: Damage) -> None:
    card = b"---\nlicense: mit\ndate: 2024-01-02\ntags: [a, &b c, !!int 3]\n---\n# A model\n"
    (bert / "README.md").write_bytes(damage(card))
    assert license_of(bert) is None or license_of(bert)


@few
@given(damage=BYTES | DEEP.map(lambda data: lambda _: data))
def test_damaged_modules(bert: Path, damage: Damage) -> None:
    (bert / "1_Pooling").mkdir(exist_ok=True)
    (bert / "1_Pooling/config.json").write_text('{"pooling_mode_mean_tokens": true}')
    modules = b'[{"type": "a.Transformer", "path": ""}, {"type": "a.Pooling", "path": "1_Pooling"}]'
    (bert / "modules.json").write_bytes(damage(modules))
    with suppress(ArtifactError):
        require_mean_pooling(bert, "m")


# What is flipped may overflow what numpy counts with before the file is refused for it.
@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
@few
@given(damage=BYTES)
def test_a_damaged_gguf_file(bring: Import, gguf: Path, damage: Damage) -> None:
    path = gguf.with_name("damaged.gguf")
    path.write_bytes(damage(gguf.read_bytes()))
    sound_or_refused(bring, path)


@few
@given(damage=overwritten(st.integers(4, 900)))
def test_a_damaged_head_of_a_gguf_file(bring: Import, gguf: Path, damage: Damage) -> None:
    path = gguf.with_name("damaged.gguf")
    path.write_bytes(damage(gguf.read_bytes()))
    sound_or_refused(bring, path)


def test_what_is_not_damaged_is_made(bring: Import, llama: Path, gguf: Path) -> None:
    assert sound_or_refused(bring, llama)
    assert sound_or_refused(bring, gguf)
