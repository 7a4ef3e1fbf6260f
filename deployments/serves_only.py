"""What only Serve may call on a deployment.

A handle's method is looked up with no filter: it can name `__init__` and `__del__` too, and what
`serve.ingress` adds. This keeps a job from breaking a replica by mistake. It is no wall against a
hostile one: what `object` has for reading (`__getattribute__`) can still be named, and arguments
are unpickled in the replica. The wall is Ray's token, which a job needs to get a handle at all.
"""

import functools
import inspect
from collections.abc import Callable
from typing import Any, Final

from ray.serve.context import _get_serve_request_context

from modelyard.contract.errors import Forbidden

# Setting an attribute replaces a pipeline or a shell as well as `__init__` does.
_OF_EVERY_CLASS: Final = ("__init__", "__setattr__", "__delattr__", "reconfigure")


def refuse_a_handle(method: str) -> None:
    """Raises Forbidden inside a request. Serve's own start, table and shutdown are none."""
    if _get_serve_request_context().request_id:
        raise Forbidden(f"{method} is called by Serve, never by handle: change it by a deploy")


def serves_only(made: type, *methods: str) -> type:
    """`made`, whose `__init__`, `reconfigure` and `methods` refuse a handle.

    For the class that is deployed, not its base: `serve.ingress` adds methods, and puts its own
    `__del__` before ours.
    """
    for name in (*_OF_EVERY_CLASS, *methods):
        setattr(made, name, _refusing(getattr(made, name)))
    return made


def _refusing(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def called(*args: Any, **kwargs: Any) -> Any:
        refuse_a_handle(method.__name__)
        return method(*args, **kwargs)

    @functools.wraps(method)
    async def awaited(*args: Any, **kwargs: Any) -> Any:
        refuse_a_handle(method.__name__)
        return await method(*args, **kwargs)

    # Serve asks whether a method is a coroutine function, and awaits by the answer.
    return awaited if inspect.iscoroutinefunction(method) else called
