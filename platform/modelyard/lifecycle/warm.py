"""What a generator runs before its first caller: every path whose first use is slow."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from modelyard.artifacts.manifest import Manifest, WarmPrompt
from modelyard.contract.operations import Operation

OUTPUT_TOKENS: Final = 4
_MEDIUM_MAX_TOKENS: Final = 1024
_SHORT_TOKENS: Final = 16
# Together they make a batch of several shapes. More would warm nothing new and cost their tokens.
_TOGETHER: Final = (4, 16, 24, 32, 48, 64, 80, 96)
_SAY: Final = [{"role": "user", "content": "Say hello to the people of this team."}]
_SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {"ok": {"type": "boolean"}},
    "required": ["ok"],
    "additionalProperties": False,
}
_TOOLS: Final = [
    {
        "type": "function",
        "function": {
            "name": "hello",
            "parameters": {"type": "object", "properties": {"name": {"type": "string"}}},
        },
    }
]
_OPTIONS: Final[tuple[Mapping[str, Any], ...]] = (
    {"temperature": 0},
    {"temperature": 0.8, "top_p": 0.9, "top_k": 40, "seed": 1},
    {"temperature": 0.8, "min_p": 0.05, "n": 2},
    {"temperature": 0, "repetition_penalty": 1.1, "presence_penalty": 0.1},
    {"logprobs": True, "top_logprobs": 2},
    {"response_format": {"type": "json_object"}},
    {
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "warm", "schema": dict(_SCHEMA)},
        }
    },
)


@dataclass(frozen=True, slots=True)
class WarmRequest:
    """A request of the platform's own. name: which part of the warm-up it is, for the log."""

    name: str
    operation: Operation
    body: Mapping[str, Any]


def generator_rounds(
    manifest: Manifest, filler: Callable[[int], list[int]]
) -> list[tuple[WarmRequest, ...]]:
    """The requests of a warm-up, in order; those of one round run together.

    filler(n) gives n token ids of plain text: a prompt of token ids has exactly the length that is
    wanted. The prompts grow, so that the longest, whose step is measured, pays for itself alone.
    """
    chats = manifest.tokenizer.chat_template_sha256 is not None
    rounds: list[tuple[WarmRequest, ...]] = [(_prompt("short", _SHORT_TOKENS, filler),)]
    if chats:
        rounds += [(_chat(options),) for options in _OPTIONS]
        if manifest.runtime.engine_args.tool_call_parser is not None:
            # Forced, not "auto": a model whose template does not show its tools refuses that, and
            # it is the forced call that compiles a grammar.
            rounds.append((_chat({"tools": _TOOLS, "tool_choice": "required"}),))
    rounds.append(tuple(_prompt("together", tokens, filler) for tokens in _TOGETHER))
    for name in ("medium", "near-max-context"):
        tokens = prompt_tokens(manifest, name)
        if name in manifest.warmup.prompts and tokens > _SHORT_TOKENS:
            rounds.append((_prompt(name, tokens, filler),))
    return rounds


def prompt_tokens(manifest: Manifest, name: WarmPrompt) -> int:
    """The length of a warm-up's prompt. near-max-context leaves room for its answer alone."""
    most = manifest.limits.max_context_tokens - OUTPUT_TOKENS
    match name:
        case "short":
            return min(_SHORT_TOKENS, most)
        case "medium":
            return min(_MEDIUM_MAX_TOKENS, most // 4)
        case "near-max-context":
            return most


def _prompt(name: str, tokens: int, filler: Callable[[int], list[int]]) -> WarmRequest:
    body = {"prompt": filler(tokens), "max_tokens": OUTPUT_TOKENS, "temperature": 0}
    return WarmRequest(name, Operation.COMPLETIONS, body)


def _chat(options: Mapping[str, Any]) -> WarmRequest:
    body = {"messages": _SAY, "max_tokens": OUTPUT_TOKENS} | dict(options)
    return WarmRequest(", ".join(options), Operation.CHAT, body)
