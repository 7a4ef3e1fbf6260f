from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from modelyard.config.explain import Problem, did_you_mean, explain, model_at
from modelyard.config.frozen import Frozen
from modelyard.config.routes import Route
from modelyard.config.serve_file import Autoscaling, ServeFile
from modelyard.config.table import Table


class Inner(Frozen):
    size: Annotated[int, Field(gt=0)] | Literal["auto"] | None = None
    label: str = ""


class Outer(Frozen):
    inner: dict[str, Inner] = Field(default_factory=dict)
    many: tuple[Inner, ...] = ()
    needed: int


def problems(record: Any) -> list[Problem]:
    try:
        Outer.model_validate(record)
    except ValidationError as error:
        return explain(error, Outer, record)
    return []


def test_an_unknown_key_suggests_the_nearest_known_one() -> None:
    assert problems({"needed": 1, "inner": {"a": {"lable": "x"}}}) == [
        Problem(("inner", "a", "lable"), "unknown key: did you mean label?", unknown_key=True)
    ]


def test_an_unknown_key_that_is_near_to_nothing_lists_what_there_is() -> None:
    assert problems({"needed": 1, "many": [{"zzz": 1}]})[0].message == (
        "unknown key: remove it, or use one of size, label"
    )


def test_a_missing_key_is_named_by_its_own_path() -> None:
    assert problems({}) == [Problem(("needed",), "required and missing: add it")]


def test_the_members_of_a_union_make_one_problem_at_the_path_of_the_file() -> None:
    (problem,) = problems({"needed": 1, "inner": {"a": {"size": "big"}}})
    assert problem.path == ("inner", "a", "size")
    assert "valid integer" in problem.message
    assert ", or: " in problem.message
    assert "'auto'" in problem.message


def test_text_that_yaml_reads_as_something_else_asks_for_quotes() -> None:
    (problem,) = problems({"needed": 1, "inner": {"a": {"label": False}}})
    assert problem.message == "must be text: put it in quotes"


def test_models_are_found_through_lists_dicts_optionals_and_aliases() -> None:
    path = ("applications", 0, "deployments", 0, "autoscaling_config")
    assert model_at(ServeFile, path) is Autoscaling
    assert model_at(Table, ("routes", "any")) is Route
    assert model_at(Table, ("schema",)) is None
    assert model_at(ServeFile, ("applications", 0, "args", "engine")) is None


def test_nothing_is_suggested_for_a_word_that_is_near_to_nothing() -> None:
    assert did_you_mean("qqq", ["alpha", "beta"]) == ""
