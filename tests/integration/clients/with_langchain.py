"""LangChain: ChatOpenAI, OpenAIEmbeddings and CohereRerank, as an application writes them."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any, Literal

import llama_index.core
import openai
from checks import KEY, LONG_STORY, PASSAGES, QUESTION, URL, check, main
from cohere.errors import NotFoundError
from langchain_cohere import CohereRerank
from langchain_core.documents import Document
from langchain_core.messages import HumanMessage, SystemMessage, ToolMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI, OpenAI, OpenAIEmbeddings
from pydantic import BaseModel

# OpenAIEmbeddings counts in OpenAI's tokens, and downloads their table at first use. LlamaIndex
# ships the same table, so that the test needs no network.
os.environ["TIKTOKEN_CACHE_DIR"] = str(
    Path(llama_index.core.__file__).parent / "_static" / "tiktoken_cache"
)


class Capital(BaseModel):
    """The capital of a country."""

    city: Literal["Paris", "London"]


@tool
def find_order(order: Literal["first", "last"]) -> str:
    """Find an order."""
    return f"the {order} order is on its way"


def chat_model(**options: Any) -> ChatOpenAI:
    return ChatOpenAI(
        model="support-assistant", base_url=f"{URL}/v1", api_key=KEY, temperature=0, **options
    )


def embeddings_model(**options: Any) -> OpenAIEmbeddings:
    return OpenAIEmbeddings(model="support-embed", base_url=f"{URL}/v1", api_key=KEY, **options)


def reranker(**options: Any) -> CohereRerank:
    return CohereRerank(
        **({"model": "support-rerank", "base_url": URL, "cohere_api_key": KEY} | options)
    )


@check
def invoke() -> Any:
    answer = chat_model().invoke(
        [SystemMessage("You answer in one sentence."), HumanMessage(QUESTION)]
    )
    return {
        "text": answer.text,
        "usage": answer.usage_metadata,
        "metadata": answer.response_metadata,
    }


@check
def stream() -> Any:
    whole = chat_model().invoke(QUESTION).text
    pieces = list(chat_model(stream_usage=True).stream(QUESTION))
    usages = [piece.usage_metadata for piece in pieces if piece.usage_metadata]
    return {
        "same": "".join(piece.text for piece in pieces) == whole,
        "pieces": len(pieces),
        "usages": usages,
    }


@check
def stream_without_usage() -> Any:
    pieces = list(chat_model(stream_usage=False).stream(QUESTION))
    return {"text": "".join(piece.text for piece in pieces)}


@check
def astream() -> Any:
    async def pieces() -> list[str]:
        return [piece.text async for piece in chat_model().astream(QUESTION)]

    return "".join(asyncio.run(pieces()))


@check
def batch() -> Any:
    return [answer.text for answer in chat_model().batch([QUESTION] * 6)]


@check
def chain() -> Any:
    """A prompt, a model and a parser, streamed through all three."""
    prompt = ChatPromptTemplate.from_messages([("human", "What is the capital of {country}?")])
    steps = prompt | chat_model() | StrOutputParser()
    return "".join(steps.stream({"country": "France"}))


@check
def tools() -> Any:
    """A call that is forced, run, and given back as LangChain's agents do."""
    asked = [HumanMessage("Find my last order.")]
    calling = chat_model().bind_tools([find_order], tool_choice="find_order", strict=True)
    answer = calling.invoke(asked)
    [call] = answer.tool_calls
    result = find_order.invoke(call)
    assert isinstance(result, ToolMessage)
    after = chat_model(max_tokens=16).invoke([*asked, answer, result])
    return {"name": call["name"], "arguments": call["args"], "answered_after": bool(after.text)}


@check
def streamed_tool_call() -> Any:
    calling = chat_model().bind_tools([find_order], tool_choice="find_order", strict=True)
    first, *rest = calling.stream("Find my last order.")
    whole = first
    for piece in rest:
        whole = whole + piece
    [call] = whole.tool_calls
    return {"name": call["name"], "arguments": call["args"]}


@check
def structured_output() -> Any:
    """json_schema is LangChain's default; function_calling is what older code asks for."""
    seen = {}
    for method in ("json_schema", "function_calling"):
        answer = chat_model().with_structured_output(Capital, method=method, strict=True)
        seen[method] = answer.invoke(QUESTION).model_dump()
    return seen


@check
def completion_model() -> Any:
    return OpenAI(
        model="support-assistant", base_url=f"{URL}/v1", api_key=KEY, temperature=0, max_tokens=6
    ).invoke("The capital of France is")


@check
def responses_api() -> Any:
    model = chat_model(use_responses_api=True)
    streamed = "".join(piece.text for piece in model.stream(QUESTION))
    return {"text": model.invoke(QUESTION).text, "streamed": streamed}


@check
def stop_and_several_choices() -> Any:
    stopped = chat_model().invoke(QUESTION, stop=[" is"])
    several = ChatOpenAI(
        model="support-assistant", base_url=f"{URL}/v1", api_key=KEY, n=2, max_tokens=8
    ).generate([[HumanMessage(QUESTION)]])
    return {"stopped": stopped.text, "choices": len(several.generations[0])}


@check
def cancelled_stream() -> Any:
    """An application that stops reading: the generator is closed."""
    model = chat_model(
        extra_body={"ignore_eos": True},
        default_headers={"X-Request-Id": "langchain-closed"},
        max_tokens=512,
    )
    pieces = model.stream(LONG_STORY)
    seen = [next(pieces).text for _ in range(5)]
    pieces.close()
    return len(seen)


@check
def error_of_an_unknown_model() -> Any:
    try:
        ChatOpenAI(model="nobody", base_url=f"{URL}/v1", api_key=KEY).invoke(QUESTION)
    except openai.NotFoundError as error:
        return {"code": error.code, "text": str(error)}
    return {}


@check
def embeddings_by_default() -> Any:
    """Unless told otherwise, it sends the numbers of OpenAI's tokens, which mean other words here.

    Both the rare words, whose numbers our vocabulary does not have, and the common ones.
    """
    seen = {}
    for name, text in (("rare", "quinoa 火锅"), ("common", "How do I get a refund?")):
        try:
            seen[name] = len(embeddings_model().embed_query(text))
        except openai.BadRequestError as error:
            seen[name] = str(error)
    return seen


@check
def embeddings() -> Any:
    model = embeddings_model(check_embedding_ctx_length=False)
    query = model.embed_query("How do I get a refund?")
    documents = model.embed_documents(["I want my money back", "The weather is nice today"])
    again = asyncio.run(model.aembed_query("How do I get a refund?"))
    near, far = (sum(a * b for a, b in zip(query, one, strict=True)) for one in documents)
    return {"dimensions": len(query), "same": again == query, "near": near, "far": far}


@check
def rerank() -> Any:
    """It sends null fields, and a top_n of 3 however few documents there are."""
    documents = [Document(text, metadata={"row": row}) for row, text in enumerate(PASSAGES)]
    ranked = reranker().compress_documents(documents, "I was charged twice")
    return [(one.metadata["row"], one.metadata["relevance_score"]) for one in ranked]


@check
def rerank_of_records() -> Any:
    """Records become YAML in the client; None asks for all."""
    records = [{"title": "note", "text": text} for text in PASSAGES]
    ranked = reranker(top_n=None).rerank(records, "I was charged twice", top_n=None)
    return [one["index"] for one in ranked]


@check
def rerank_error() -> Any:
    try:
        reranker(model="nobody").rerank(PASSAGES, "I was charged twice")
    except NotFoundError as error:
        return {"status": error.status_code, "body": error.body}
    return {}


if __name__ == "__main__":
    main()
