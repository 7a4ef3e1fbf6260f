"""The openai client, version 2, as an application writes it."""

from __future__ import annotations

import asyncio
from typing import Any, Literal

import httpx
import openai
from checks import KEY, LONG_STORY, QUESTION, URL, check, main
from pydantic import BaseModel

MODEL = "support-assistant"
client = openai.OpenAI(base_url=f"{URL}/v1", api_key=KEY)
messages: Any = [{"role": "user", "content": QUESTION}]
long_messages: Any = [{"role": "user", "content": LONG_STORY}]


class Capital(BaseModel):
    """A schema that a small model cannot leave half done."""

    city: Literal["Paris", "London"]
    in_europe: bool


class FindOrder(BaseModel):
    """Find an order."""

    order: Literal["first", "last"]


@check
def chat() -> Any:
    answer = client.chat.completions.create(model=MODEL, messages=messages, temperature=0)
    return answer.model_dump(exclude={"choices": {0: {"logprobs"}}})


@check
def chat_stream() -> Any:
    stream = client.chat.completions.create(
        model=MODEL, messages=messages, temperature=0, stream=True
    )
    chunks = list(stream)
    return {
        "text": "".join(chunk.choices[0].delta.content or "" for chunk in chunks),
        "chunks": len(chunks),
        "ids": len({chunk.id for chunk in chunks}),
        "usages": [chunk.usage is not None for chunk in chunks].count(True),
        "finish_reasons": [
            c.choices[0].finish_reason for c in chunks if c.choices[0].finish_reason
        ],
    }


@check
def chat_stream_with_usage() -> Any:
    stream = client.chat.completions.create(
        model=MODEL,
        messages=messages,
        temperature=0,
        stream=True,
        stream_options={"include_usage": True},
    )
    last = list(stream)[-1]
    assert last.usage is not None
    return {"choices": len(last.choices), "usage": last.usage.model_dump()}


@check
def chat_async() -> Any:
    """Several at once on one client, streamed and not."""

    async def whole(own: openai.AsyncOpenAI) -> str:
        answer = await own.chat.completions.create(model=MODEL, messages=messages, temperature=0)
        return answer.choices[0].message.content or ""

    async def pieces(own: openai.AsyncOpenAI) -> str:
        stream = await own.chat.completions.create(
            model=MODEL, messages=messages, temperature=0, stream=True
        )
        return "".join([chunk.choices[0].delta.content or "" async for chunk in stream])

    async def together() -> list[str]:
        async with openai.AsyncOpenAI(base_url=f"{URL}/v1", api_key=KEY) as own:
            return await asyncio.gather(whole(own), pieces(own), whole(own), pieces(own))

    return asyncio.run(together())


@check
def raw_response() -> Any:
    raw = client.chat.completions.with_raw_response.create(
        model=MODEL, messages=messages, extra_headers={"X-Request-Id": "openai2-raw"}
    )
    return {"headers": dict(raw.headers), "request_id": raw.request_id, "id": raw.parse().id}


@check
def streaming_response() -> Any:
    with client.chat.completions.with_streaming_response.create(
        model=MODEL, messages=messages, temperature=0, stream=True
    ) as response:
        lines = [line for line in response.iter_lines() if line]
        return {"media": response.headers["content-type"], "first": lines[0], "last": lines[-1]}


@check
def parse() -> Any:
    answer = client.chat.completions.parse(
        model=MODEL, messages=messages, temperature=0, response_format=Capital
    )
    parsed = answer.choices[0].message.parsed
    assert isinstance(parsed, Capital)
    return parsed.model_dump()


@check
def parse_a_stream() -> Any:
    with client.chat.completions.stream(
        model=MODEL, messages=messages, temperature=0, response_format=Capital
    ) as stream:
        kinds = {event.type for event in stream}
        parsed = stream.get_final_completion().choices[0].message.parsed
    assert isinstance(parsed, Capital)
    return {"events": sorted(kinds), "parsed": parsed.model_dump()}


@check
def parse_a_tool_call() -> Any:
    answer = client.chat.completions.parse(
        model=MODEL,
        messages=[{"role": "user", "content": "Find my last order"}],
        temperature=0,
        tools=[openai.pydantic_function_tool(FindOrder)],
        tool_choice={"type": "function", "function": {"name": "FindOrder"}},
    )
    [call] = answer.choices[0].message.tool_calls or []
    assert isinstance(call.function.parsed_arguments, FindOrder)
    return {"name": call.function.name, "finish_reason": answer.choices[0].finish_reason}


@check
def completions() -> Any:
    asked: Any = {"model": MODEL, "prompt": "The capital of France is", "max_tokens": 6}
    whole = client.completions.create(**asked, temperature=0)
    stream = client.completions.create(**asked, temperature=0, stream=True)
    return {"whole": whole.choices[0].text, "stream": "".join(c.choices[0].text for c in stream)}


@check
def embeddings() -> Any:
    """The client asks for base64 unless told otherwise, and decodes it itself."""
    asked: Any = {"model": "support-embed", "input": ["a refund", "money back"]}
    default = client.embeddings.create(**asked)
    floats = client.embeddings.create(**asked, encoding_format="float")
    pairs = zip(default.data[1].embedding, floats.data[1].embedding, strict=True)
    return {
        "dimensions": [len(item.embedding) for item in default.data],
        "largest_difference": max(abs(a - b) for a, b in pairs),
        "prompt_tokens": default.usage.prompt_tokens,
    }


@check
def models() -> Any:
    return [model.id for model in client.models.list()]


def _status_error(**options: Any) -> dict[str, Any]:
    """The error of a request, and how many times the client sent it."""
    sent: list[httpx.Request] = []
    http_client = httpx.Client(event_hooks={"request": [sent.append]})
    with openai.OpenAI(
        base_url=f"{URL}/v1", api_key=options.pop("api_key", KEY), http_client=http_client
    ) as own:
        try:
            own.chat.completions.create(**({"model": MODEL, "messages": messages} | options))
        except openai.APIStatusError as error:
            return {
                "type": type(error).__name__,
                "status": error.status_code,
                "code": error.code,
                "param": error.param,
                "reason": error.body["reason"] if isinstance(error.body, dict) else None,
                "request_id": error.request_id,
                "sent": len(sent),
            }
    return {"type": "", "sent": len(sent)}


@check
def error_of_a_wrong_key() -> Any:
    return _status_error(api_key="my_no_key")


@check
def error_of_an_unknown_model() -> Any:
    return _status_error(model="nobody")


@check
def error_of_a_wrong_field() -> Any:
    return _status_error(temperature=-1)


@check
def error_that_is_not_worth_a_retry() -> Any:
    """A deadline that passed after the engine began: 504, which a client would retry by itself."""
    return _status_error(
        messages=long_messages,
        extra_body={"ignore_eos": True},
        extra_headers={"X-Deadline-Ms": "500"},
    )


@check
def error_that_is_worth_a_retry() -> Any:
    """A request that was late before the engine began costs nothing to send again."""
    return _status_error(extra_headers={"X-Deadline-Ms": "1"})


@check
def read_timeout() -> Any:
    """The client tells its own read timeout; the platform needs not work for longer."""
    return _status_error(
        messages=long_messages,
        extra_body={"ignore_eos": True},
        extra_headers={"x-stainless-read-timeout": "0.5"},
    )


@check
def timeout() -> Any:
    """What a user does: `timeout=`. The client gives up, and so does the platform."""
    try:
        client.with_options(timeout=0.7, max_retries=0).chat.completions.create(
            model=MODEL,
            messages=long_messages,
            extra_body={"ignore_eos": True},
            extra_headers={"X-Request-Id": "openai2-timeout"},
        )
    except (openai.APITimeoutError, openai.InternalServerError) as error:
        return type(error).__name__
    return "an answer"


@check
def stream_that_fails() -> Any:
    text = []
    try:
        for chunk in client.chat.completions.create(
            model=MODEL,
            messages=long_messages,
            extra_body={"ignore_eos": True},
            extra_headers={"X-Deadline-Ms": "2500"},
            stream=True,
        ):
            text.append(chunk.choices[0].delta.content or "")
    except openai.APIError as error:
        return {"type": type(error).__name__, "text": str(error), "code": error.code}
    return {"type": "", "text": "".join(text)}


@check
def stream_closed_early() -> Any:
    stream = client.chat.completions.create(
        model=MODEL,
        messages=long_messages,
        max_tokens=512,
        extra_body={"ignore_eos": True},
        extra_headers={"X-Request-Id": "openai2-closed"},
        stream=True,
    )
    seen = [next(stream).id for _ in range(5)]
    stream.close()
    return len(seen)


@check
def task_cancelled() -> Any:
    async def cancelled() -> int:
        seen = 0
        async with openai.AsyncOpenAI(base_url=f"{URL}/v1", api_key=KEY) as own:
            try:
                async with asyncio.timeout(1.5):
                    async for _ in await own.chat.completions.create(
                        model=MODEL,
                        messages=long_messages,
                        max_tokens=512,
                        extra_body={"ignore_eos": True},
                        extra_headers={"X-Request-Id": "openai2-cancelled"},
                        stream=True,
                    ):
                        seen += 1
            except TimeoutError:
                return seen
        raise AssertionError("the stream ended by itself")

    return asyncio.run(cancelled())


@check
def responses() -> Any:
    answer = client.responses.create(model=MODEL, input=QUESTION, temperature=0)
    assert answer.usage is not None
    return {
        "text": answer.output_text,
        "status": answer.status,
        "model": answer.model,
        "output_tokens": answer.usage.output_tokens,
    }


@check
def responses_stream() -> Any:
    events = list(client.responses.create(model=MODEL, input=QUESTION, temperature=0, stream=True))
    return {
        "text": "".join(e.delta for e in events if e.type == "response.output_text.delta"),
        "first": events[0].type,
        "last": events[-1].type,
        "numbers": [event.sequence_number for event in events],
    }


@check
def responses_parse() -> Any:
    answer = client.responses.parse(model=MODEL, input=QUESTION, temperature=0, text_format=Capital)
    assert answer.output_parsed is not None
    return answer.output_parsed.model_dump()


@check
def responses_that_would_be_kept() -> Any:
    try:
        client.responses.create(model=MODEL, input=QUESTION, previous_response_id="resp_1")
    except openai.BadRequestError as error:
        return {"param": error.param, "text": str(error)}
    return {}


if __name__ == "__main__":
    main()
