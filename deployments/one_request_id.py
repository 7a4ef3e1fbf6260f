"""Serve and we both answer with X-Request-Id: once is enough."""

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from modelyard.contract.headers import REQUEST_ID


def one_request_id(inner: ASGIApp) -> ASGIApp:
    """Drop our X-Request-Id where Serve will add the same one: it appends without looking.

    When the caller's id is not well-formed ours differs, and stands before Serve's echo of it.
    """

    async def wrapped(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await inner(scope, receive, send)
            return
        given = Headers(scope=scope).get(REQUEST_ID, "")

        async def send_once(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                if headers.get(REQUEST_ID) == given:
                    del headers[REQUEST_ID]
            await send(message)

        await inner(scope, receive, send_once)

    return wrapped
