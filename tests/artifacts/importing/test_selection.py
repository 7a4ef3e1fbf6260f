import pytest

from modelyard.artifacts.importing.selection import select
from modelyard.contract.errors import ArtifactError

PLAIN = ["config.json", "tokenizer.json", "model.safetensors"]


def test_what_serving_reads_is_kept_and_the_rest_is_named() -> None:
    rest = [
        "README.md",
        "flax_model.msgpack",
        "onnx/model.onnx",
        "onnx/config.json",
        "optimizer.pt",
        "pytorch_model.bin",
        "tf_model.h5",
        "training_args.bin",
        "consolidated.safetensors",
    ]
    kept = [*PLAIN, "1_Pooling/config.json", "chat_template.jinja", "modules.json", "vocab.txt"]
    selection = select([*rest, *kept], "m")
    assert set(selection.kept) == set(kept)
    assert set(selection.left) == set(rest)
    assert selection.left_line(shown=2) == (
        "left behind, serving does not need them: README.md, consolidated.safetensors and 7 more"
    )


def test_nothing_left_behind_says_nothing() -> None:
    assert select(PLAIN, "m").left_line() == ""


def test_shards_are_those_of_the_index() -> None:
    paths = ["config.json", "tokenizer.json", "model.safetensors.index.json", "a.safetensors"]
    selection = select([*paths, "stray.safetensors"], "m", shards={"a.safetensors"})
    assert selection.left == ("stray.safetensors",)
    with pytest.raises(ArtifactError, match=r"names b.safetensors, which is not there"):
        select(paths, "m", shards={"a.safetensors", "b.safetensors"})


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pt", "weights.ckpt", "x.pth"])
def test_pickles_alone_are_refused_by_name_with_the_command(name: str) -> None:
    with pytest.raises(ArtifactError, match=rf"{name} can run code .*importing.convert FOLDER"):
        select(["config.json", "tokenizer.json", "optimizer.pt", name], "m")


@pytest.mark.parametrize(
    ("paths", "words"),
    [
        (["config.json", "tokenizer.json"], "there are no weights in it"),
        (["config.json", "tokenizer.json", "optimizer.pt"], "there are no weights in it"),
        (["config.json", "tokenizer.json", "other.safetensors"], "rename it model.safetensors"),
        (["tokenizer.json", "model.safetensors"], "no config.json: not a model folder"),
        (["pytorch_model.bin"], "no config.json: not a model folder"),
        (["config.json", "model.safetensors"], r"there is no tokenizer.json: write one with"),
    ],
)
def test_an_incomplete_folder_is_refused(paths: list[str], words: str) -> None:
    with pytest.raises(ArtifactError, match=words):
        select(paths, "m")
