"""Tools that a model never sees: its chat template leaves them out, so it would never call one."""

from __future__ import annotations

import re
from typing import Any, Final

from modelyard.contract.errors import InvalidRequest

# A word of the template: one that names it without showing the tools is let through.
_TOOLS: Final = re.compile(r"\btools\b")


def refuse_unseen_tools(request: Any, tokenizer: Any) -> None:
    """Raise InvalidRequest where the model itself would have to choose a tool and cannot.

    request: a vLLM request of any kind. An answer without a call is what a model gives that needs
    no tool, so a caller would never learn of it. A forced call is made by the grammar: it works.
    """
    if not getattr(request, "tools", None) or request.tool_choice != "auto":
        return
    get_template = getattr(tokenizer, "get_chat_template", None)
    if get_template is None or _TOOLS.search(get_template(tools=[])):
        return
    raise InvalidRequest(
        "this model is not shown its tools, so it cannot choose one: set tool_choice to required, "
        "to a function, or to none",
        param="tool_choice",
        reason="unsupported",
        wire_code="unsupported",
    )
