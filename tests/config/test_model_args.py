import ast
import importlib.util
from pathlib import Path

import pytest
from pydantic import ValidationError

from modelyard.config.model_args import EngineArgs, GeneratorArgs, SmallModelArgs


def vllm_engine_arguments() -> set[str]:
    """Read from vLLM's source: importing it takes seconds and starts a platform."""
    spec = importlib.util.find_spec("vllm")
    assert spec is not None
    assert spec.origin is not None
    source = Path(spec.origin).parent / "engine" / "arg_utils.py"
    for node in ast.parse(source.read_text()).body:
        if isinstance(node, ast.ClassDef) and node.name == "EngineArgs":
            return {
                item.target.id
                for item in node.body
                if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)
            }
    raise AssertionError(f"{source} defines no EngineArgs")


def test_the_allow_list_uses_vllms_names() -> None:
    assert set(EngineArgs.model_fields) <= vllm_engine_arguments()


def test_what_changes_answers_is_not_in_the_allow_list() -> None:
    assert not set(EngineArgs.REFUSED) & set(EngineArgs.model_fields)
    serving_layer_only = {"chat_template", "tool_call_parser"}
    assert set(EngineArgs.REFUSED) - serving_layer_only <= vllm_engine_arguments()


def test_only_what_the_file_sets_reaches_the_engine() -> None:
    args = GeneratorArgs.model_validate(
        {"artifact": "file:///m/x/1", "engine": {"max_num_seqs": 4, "enforce_eager": False}}
    )
    assert args.engine.model_dump(exclude_none=True) == {"max_num_seqs": 4, "enforce_eager": False}


@pytest.mark.parametrize("engine", [{"dtype": "float16"}, {"max_num_seqs": 0}])
def test_a_deploy_that_skipped_the_check_is_still_refused(engine: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        EngineArgs.model_validate(engine)


def test_an_artifact_is_required() -> None:
    for model in (GeneratorArgs, SmallModelArgs):
        with pytest.raises(ValidationError, match="artifact"):
            model.model_validate({})
