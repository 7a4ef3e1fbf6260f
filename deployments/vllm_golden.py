"""A golden question to vLLM's serving layer, and what is read of its answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from modelyard.contract.operations import Operation
from modelyard.lifecycle.observed import Generated
from modelyard.lifecycle.questions import GeneratorQuestion

_TOP: Final = 5  # a token of a near tie is among them
_TOKEN: Final = "token_id:"


def golden_request(question: GeneratorQuestion, *, chats: bool) -> tuple[Operation, dict[str, Any]]:
    """A greedy request whose answer tells its token ids. chats: the version has a chat template;
    one that has none completes the messages' texts, which are all it can be asked."""
    shared = {
        "max_tokens": question.max_tokens,
        "temperature": 0,
        "return_token_ids": True,
        "return_tokens_as_token_ids": True,
    }
    if not chats:
        prompt = "\n".join(message.content for message in question.messages)
        return Operation.COMPLETIONS, shared | {"prompt": prompt, "logprobs": _TOP}
    messages = [message.model_dump() for message in question.messages]
    return Operation.CHAT, shared | {"messages": messages, "logprobs": True, "top_logprobs": _TOP}


def generated(response: Any) -> Generated:
    """Of the ChatCompletionResponse or CompletionResponse to a `golden_request`."""
    choice = response.choices[0]
    if not hasattr(choice, "message"):
        return _completed(choice)
    content = choice.logprobs.content if choice.logprobs is not None else None
    return Generated(
        prompt_token_ids=tuple(response.prompt_token_ids),
        token_ids=tuple(choice.token_ids),
        text=choice.message.content or "",
        logprobs=tuple(_row(place) for place in content or ()),
    )


def _completed(choice: Any) -> Generated:
    rows = choice.logprobs.top_logprobs if choice.logprobs is not None else ()
    return Generated(
        prompt_token_ids=tuple(choice.prompt_token_ids),
        token_ids=tuple(choice.token_ids),
        text=choice.text,
        logprobs=tuple({_id(token): float(p) for token, p in row.items()} for row in rows),
    )


def _row(place: Any) -> Mapping[int, float]:
    """The chosen token is not always among the likeliest that were asked for."""
    return {_id(one.token): float(one.logprob) for one in (*place.top_logprobs, place)}


def _id(token: str) -> int:
    return int(token.removeprefix(_TOKEN))
