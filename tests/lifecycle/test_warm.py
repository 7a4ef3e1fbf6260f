"""What a generator runs before its first caller."""

from __future__ import annotations

import pytest

from modelyard.artifacts.manifest import AnswerArgs, Limits, Manifest, Runtime, Tokenizer, Warmup
from modelyard.contract.operations import Kind, Operation
from modelyard.lifecycle.filler import Filler
from modelyard.lifecycle.warm import OUTPUT_TOKENS, generator_rounds, prompt_tokens
from modelyard.testing.manifests import a_manifest


def manifest(*, tools: bool = True, chats: bool = True, **changes: object) -> Manifest:
    parser = "hermes" if tools else None
    limits = Limits(max_context_tokens=4096, max_output_tokens=1024, drain_s=60)
    fields: dict[str, object] = {
        "kind": Kind.GENERATOR,
        "runtime": Runtime(engine="vllm", engine_args=AnswerArgs(tool_call_parser=parser)),
        "limits": limits,
        "tokenizer": Tokenizer(
            sha256="0" * 64, vocab_size=9, chat_template_sha256="0" * 64 if chats else None
        ),
    }
    return a_manifest(**(fields | changes))


def words(text: str) -> list[int]:
    return [int(word) for word in text.split()]


def names(of: Manifest) -> list[str]:
    return [together[0].name for together in generator_rounds(of, Filler(words))]


def test_every_path_whose_first_use_is_slow_is_run() -> None:
    bodies = [
        one.body for together in generator_rounds(manifest(), Filler(words)) for one in together
    ]
    options = {key for body in bodies for key in body}
    assert {"temperature", "top_p", "min_p", "logprobs", "response_format", "tools", "n"} <= options
    kinds = {body["response_format"]["type"] for body in bodies if "response_format" in body}
    assert kinds == {"json_object", "json_schema"}


def test_prompts_grow_to_the_limit_and_leave_room_for_the_answer() -> None:
    rounds = generator_rounds(manifest(), Filler(words))
    lengths = [
        len(one.body["prompt"]) for together in rounds for one in together if "prompt" in one.body
    ]
    assert (lengths[0], lengths[-2:]) == (16, [1023, 4096 - OUTPUT_TOKENS])


def test_several_prompts_of_several_lengths_run_together() -> None:
    together = max(generator_rounds(manifest(), Filler(words)), key=len)
    assert len({len(one.body["prompt"]) for one in together}) == len(together) == 8


def test_no_prompt_begins_like_another_which_the_prefix_cache_would_know() -> None:
    rounds = generator_rounds(manifest(), Filler(words))
    prompts = [
        one.body["prompt"] for together in rounds for one in together if "prompt" in one.body
    ]
    assert len({prompt[0] for prompt in prompts}) == len(prompts)


def test_the_manifest_says_which_lengths() -> None:
    short = manifest(warmup=Warmup(prompts=("short",)))
    assert not {"medium", "near-max-context"} & set(names(short))
    assert names(manifest())[-2:] == ["medium", "near-max-context"]


def test_tools_are_run_where_there_is_a_parser() -> None:
    assert "tools, tool_choice" in names(manifest())
    assert "tools, tool_choice" not in names(manifest(tools=False))


def test_a_model_without_a_chat_template_is_sent_no_chat() -> None:
    rounds = generator_rounds(manifest(chats=False), Filler(words))
    assert {one.operation for together in rounds for one in together} == {Operation.COMPLETIONS}


@pytest.mark.parametrize("context", [6, 16, 20])
def test_a_tiny_context_is_never_overrun(context: int) -> None:
    tiny = manifest(limits=Limits(max_context_tokens=context, max_output_tokens=2, drain_s=1))
    for name in ("short", "medium", "near-max-context"):
        assert prompt_tokens(tiny, name) + OUTPUT_TOKENS <= context


def test_filler_never_says_the_same_twice() -> None:
    filler = Filler(words)
    first, second = filler(300), filler(300)
    assert (len(first), len(second)) == (300, 300)
    assert not set(first) & set(second)
