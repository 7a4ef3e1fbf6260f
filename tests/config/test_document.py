import contextlib
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from modelyard.config.document import MAX_BYTES, Document, load_document, parse_document
from modelyard.config.faults import DocumentError


def parse(text: str) -> Document:
    return parse_document(text, "x.yaml")


def fault_of(text: str) -> str:
    with pytest.raises(DocumentError) as caught:
        parse(text)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_every_path_has_the_line_of_its_key() -> None:
    document = parse("a: 1\nb:\n  c: [x,\n    y]\n  d:\n  - e: 2\n")
    assert document.root == {"a": 1, "b": {"c": ["x", "y"], "d": [{"e": 2}]}}
    assert document.line(("b", "c", 1)) == 4
    assert document.line(("b", "d")) == 5
    assert document.line(("b", "d", 0, "e")) == 6


def test_a_missing_path_has_the_line_of_its_nearest_ancestor_and_no_value() -> None:
    document = parse("a:\n  b:\n    c: 1\n")
    assert document.line(("a", "b", "missing", "deeper")) == 2
    assert document.value(("a", "b", "missing", "deeper")) is None


def test_an_alias_keeps_the_lines_of_its_anchor() -> None:
    document = parse("one: &x {k: 1}\n\ntwo: *x\n")
    assert document.root["two"] == {"k": 1}
    assert document.line(("two", "k")) == 1


def test_own_keys_beat_merged_ones_and_earlier_merges_beat_later_ones() -> None:
    text = "a: &a {k: 1, l: 1}\nb: &b {l: 2, m: 2}\nc:\n  <<: [*a, *b]\n  k: 3\n"
    document = parse(text)
    assert document.root["c"] == {"k": 3, "l": 1, "m": 2} == yaml.safe_load(text)["c"]
    assert (document.line(("c", "k")), document.line(("c", "m"))) == (5, 2)


def test_a_duplicate_key_names_both_lines() -> None:
    assert fault_of("a: 1\nb:\n  k: 1\n  k: 2\n") == (
        "x.yaml:4: b.k: set twice, first on line 3: remove one"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "x.yaml: is empty"),
        ("# only a comment\n", "x.yaml: is empty"),
        ("- a\n- b\n", "x.yaml:1:1: must hold keys and values at the top"),
        ("just text\n", "x.yaml:1:1: must hold keys and values at the top"),
        ("a: [1, 2\nb: 3\n", "x.yaml:2:2: is not valid YAML"),
        ("a: 1\n\tb: 2\n", "x.yaml:2:1: is not valid YAML"),
        ("a: *nowhere\n", "x.yaml:1:4: is not valid YAML"),
        ("a: 1\n---\nb: 2\n", "x.yaml:2:1: is not valid YAML"),
        ("a: 1\nb: \x00\n", "x.yaml:2: holds a control character"),
        ("a: !!python/object:os.system {}\n", "x.yaml:1: a: the tag"),
        ("a: !secret x\n", "x.yaml:1: a: could not determine a constructor"),
        ("a: 2026-01-01\n", "x.yaml:1: a: YAML reads this as a date: put it in quotes"),
        ("a: !!int x\n", "x.yaml:1: a: invalid literal for int"),
        ("a:\n  1: x\n", "x.yaml:2: a: a key must be text: put it in quotes"),
        ("a:\n  [1]: x\n", "x.yaml:2: a: a key must be text: put it in quotes"),
        ("a:\n  <<: 3\n", "x.yaml:2: a: `<<` merges mappings only"),
        ("a: &a [*a]\n", "x.yaml:1:4: holds an alias that contains itself"),
        ("a: " + "[" * 100 + "]" * 100, "x.yaml:1:67: is nested deeper than 64 levels"),
    ],
)
def test_a_file_that_cannot_be_read_gets_one_sentence(text: str, expected: str) -> None:
    assert fault_of(text).startswith(expected)


def test_an_alias_bomb_is_refused_without_being_expanded() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    for level in range(1, 12):
        lines.append(f"a{level}: &a{level} [" + ", ".join([f"*a{level - 1}"] * 10) + "]")
    assert "use fewer aliases" in fault_of("\n".join(lines))


def test_a_chain_of_aliases_cannot_be_deeper_than_the_limit() -> None:
    lines = ["a0: &a0 {x: 1}"]
    lines += [f"a{level}: &a{level} {{x: *a{level - 1}}}" for level in range(1, 200)]
    assert "use fewer aliases" in fault_of("\n".join(lines))


def test_files_that_are_no_text_files_get_one_sentence(tmp_path: Path) -> None:
    binary = tmp_path / "weights.bin"
    binary.write_bytes(b"\x80\xff\x00\x01")
    large = tmp_path / "large.yaml"
    large.write_bytes(b"#" * (MAX_BYTES + 1))
    for path, expected in (
        (binary, "is not UTF-8 text"),
        (large, "is larger than"),
        (tmp_path, "cannot be read (Is a directory)"),
        (tmp_path / "missing.yaml", "cannot be read (No such file or directory)"),
    ):
        with pytest.raises(DocumentError) as caught:
            load_document(path)
        assert str(caught.value).startswith(f"{path}: {expected}")


scalars = st.none() | st.booleans() | st.integers() | st.text(max_size=20)
trees = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=8,
)


@settings(deadline=None)
@given(root=st.dictionaries(st.text(max_size=9), trees))
def test_it_reads_what_pyyaml_reads_and_knows_every_line(root: dict[str, object]) -> None:
    text = yaml.safe_dump(root)
    document = parse(text)
    assert document.root == yaml.safe_load(text)
    assert all(1 <= line <= text.count("\n") + 1 for line in document.lines.values())


@settings(deadline=None)
@given(text=st.text(alphabet="ab01:-&*<[]{}!|>'\"#,?%@` \n\t\x00\u00e9"))
def test_no_text_makes_it_raise_anything_but_a_document_error(text: str) -> None:
    with contextlib.suppress(DocumentError):
        parse(text)
