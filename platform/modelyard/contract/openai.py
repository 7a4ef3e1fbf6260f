"""OpenAI's request fields: what passes to the engine, what is the platform's, what is ignored.

An allow-list, because the engine reads far more from a body than its documentation says (priority,
cache salt, ids, templates), and a field that a new engine release adds must not open by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from modelyard.contract.errors import InvalidRequest
from modelyard.contract.formats import check_formats
from modelyard.contract.grammar import check_grammars
from modelyard.contract.messages import filter_messages
from modelyard.contract.operations import Operation
from modelyard.contract.responses import STATE, filter_responses
from modelyard.contract.sampling import check_sampling
from modelyard.contract.token_ids import MAX_TOKEN_IDS, count_items, is_token_ids
from modelyard.contract.tools import filter_chat_tools

_SAMPLING: Final = frozenset(
    "frequency_penalty presence_penalty logit_bias seed stop temperature top_p top_k min_p "
    "repetition_penalty stream structured_outputs ignore_eos stop_token_ids "
    "include_stop_str_in_output skip_special_tokens".split()
)
_CHOICES: Final = frozenset("n min_tokens stream_options response_format logprobs".split())
_TOOLS: Final = frozenset("tools tool_choice parallel_tool_calls top_logprobs".split())
FIELDS: Final[dict[Operation, frozenset[str]]] = {
    Operation.CHAT: _SAMPLING | _CHOICES | _TOOLS | {"messages"},
    Operation.COMPLETIONS: _SAMPLING | _CHOICES | {"prompt", "echo"},
    Operation.RESPONSES: _SAMPLING
    | _TOOLS
    | set("input instructions include text metadata".split()),
}
# The names of the caller's output cap; the last one given runs, as OpenAI reads them.
CAPS: Final[dict[Operation, tuple[str, ...]]] = {
    Operation.CHAT: ("max_tokens", "max_completion_tokens"),
    Operation.COMPLETIONS: ("max_tokens", "max_completion_tokens"),
    Operation.RESPONSES: ("max_output_tokens",),
}
# Read here and not passed on; `user` and `prompt_cache_key` only name a conversation.
_READ: Final = frozenset(("model", "user", "prompt_cache_key"))
READ: Final[dict[Operation, frozenset[str]]] = {
    operation: _READ | set(names) for operation, names in CAPS.items()
} | {Operation.RESPONSES: _READ | {"max_output_tokens", *STATE}}
PLATFORM: Final = frozenset(
    "priority cache_salt request_id session_id kv_transfer_params ec_transfer_params "
    "vllm_xargs stream_interval chat_template chat_template_kwargs".split()
)
PLATFORM_PREFIXES: Final = ("chat_template", "mm_")
INSTEAD: Final = {
    "functions": "use tools",
    "function_call": "use tool_choice",
    "best_of": "use n",
    "suffix": "no model here fills in the middle of a text",
    "prompt_embeds": "send text or token ids",
    "use_beam_search": "beam search is not offered",
}
MAX_N: Final = 16
MAX_PROMPTS: Final = 32


@dataclass(frozen=True, slots=True)
class Fields:
    """A body after the allow-list. `cap_tokens` is the caller's output cap, None when unsaid."""

    passed: dict[str, Any]
    ignored: tuple[str, ...]
    stream: bool
    cap_tokens: int | None
    cap_param: str


def filter_fields(operation: Operation, body: Mapping[str, Any]) -> Fields:
    """Apply the allow-list. Null equals absent. Raises InvalidRequest naming the field."""
    given = {name: value for name, value in body.items() if value is not None}
    for name in given:
        _refuse_platform_field(name)
    allowed = FIELDS[operation]
    passed = {name: value for name, value in given.items() if name in allowed}
    stream = passed.get("stream", False)
    if not isinstance(stream, bool):
        raise InvalidRequest("stream must be true or false", param="stream")
    _bound_n(passed)
    check_sampling(passed)
    check_grammars(passed)
    check_formats(passed)
    match operation:
        case Operation.CHAT:
            passed["messages"] = filter_messages(passed.get("messages"))
            if "tools" in passed:
                passed["tools"] = filter_chat_tools(passed["tools"])
        case Operation.RESPONSES:
            passed = filter_responses(given, passed)
        case _:
            _check_prompt(passed.get("prompt"))
    cap, param = _cap(given, CAPS[operation])
    known = allowed | READ[operation]
    ignored = tuple(sorted(name for name in given if name not in known))
    return Fields(passed, ignored, stream, cap, param)


def _refuse_platform_field(name: str) -> None:
    if name in PLATFORM or name.startswith(PLATFORM_PREFIXES):
        raise InvalidRequest(f"{name} is set by the platform: remove it", param=name)
    if name.startswith("guided_"):
        raise InvalidRequest(
            f"{name} is not read any more: use structured_outputs or response_format", param=name
        )
    if name in INSTEAD:
        raise InvalidRequest(f"{name} is not supported: {INSTEAD[name]}", param=name)


def _cap(given: Mapping[str, Any], names: tuple[str, ...]) -> tuple[int | None, str]:
    cap, param = None, names[0]
    for name in names:
        if name in given:
            cap, param = positive_int(given[name], name), name
    return cap, param


def positive_int(value: Any, param: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InvalidRequest(f"{param} must be a whole number of at least 1", param=param)
    return value


def _bound_n(passed: Mapping[str, Any]) -> None:
    if "n" in passed and positive_int(passed["n"], "n") > MAX_N:
        raise InvalidRequest(f"n must be at most {MAX_N}: send several requests", param="n")


def _check_prompt(prompt: Any) -> None:
    if isinstance(prompt, list) and count_items(prompt) > MAX_TOKEN_IDS:
        raise InvalidRequest(
            f"prompt holds more than {MAX_TOKEN_IDS} token ids: split the request", param="prompt"
        )
    one = _is_text(prompt) or _is_token_ids(prompt)
    many = isinstance(prompt, list) and (
        all(map(_is_text, prompt)) or all(map(_is_token_ids, prompt))
    )
    if not prompt or not (one or many):
        raise InvalidRequest("prompt must be text, token ids, or a list of them", param="prompt")
    if not one and len(prompt) > MAX_PROMPTS:
        raise InvalidRequest(
            f"prompt holds {len(prompt)} prompts, at most {MAX_PROMPTS}: split them", param="prompt"
        )


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _is_token_ids(value: Any) -> bool:
    return value != [] and is_token_ids(value)
