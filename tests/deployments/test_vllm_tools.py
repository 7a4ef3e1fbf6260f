"""Which requests with tools a model without a template for them can answer."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from deployments.vllm_tools import refuse_unseen_tools
from modelyard.contract.errors import InvalidRequest

SHOWS = "{% if tools %}{{ tools | tojson }}{% endif %}{{ messages }}"
HIDES = "{% for message in messages %}{{ message.tool_calls }}{% endfor %}"


def tokenizer_of(template: str) -> Any:
    return SimpleNamespace(get_chat_template=lambda tools: template)


def request(tool_choice: Any = "auto", tools: Any = ("find_order",)) -> Any:
    return SimpleNamespace(tools=tools, tool_choice=tool_choice)


def test_a_model_that_is_not_shown_its_tools_cannot_choose_one() -> None:
    with pytest.raises(InvalidRequest) as caught:
        refuse_unseen_tools(request(), tokenizer_of(HIDES))
    assert (caught.value.param, caught.value.wire_code) == ("tool_choice", "unsupported")


@pytest.mark.parametrize("choice", ["required", "none", {"type": "function", "name": "find_order"}])
def test_a_call_that_the_caller_decides_passes(choice: Any) -> None:
    refuse_unseen_tools(request(choice), tokenizer_of(HIDES))


def test_a_model_that_is_shown_its_tools_may_choose() -> None:
    refuse_unseen_tools(request(), tokenizer_of(SHOWS))


@pytest.mark.parametrize("tools", [None, []])
def test_a_request_without_tools_passes(tools: Any) -> None:
    refuse_unseen_tools(request("none", tools), tokenizer_of(HIDES))
    refuse_unseen_tools(request("auto", tools), tokenizer_of(HIDES))


def test_a_completion_has_no_tools_at_all() -> None:
    refuse_unseen_tools(SimpleNamespace(prompt="hello"), tokenizer_of(HIDES))


def test_a_tokenizer_without_a_template_of_its_own_is_trusted() -> None:
    refuse_unseen_tools(request(), SimpleNamespace())
