"""LlamaIndex: OpenAILike, OpenAILikeEmbedding and JinaRerank, as an application writes them."""

from __future__ import annotations

import asyncio
from typing import Any

import openai
from checks import KEY, LONG_STORY, PASSAGES, QUESTION, URL, check, main
from llama_index.core import Document, VectorStoreIndex
from llama_index.core.llms import ChatMessage
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.core.tools import FunctionTool
from llama_index.embeddings.openai_like import OpenAILikeEmbedding
from llama_index.llms.openai_like import OpenAILike
from llama_index.postprocessor.jinaai_rerank import JinaRerank

asked = [ChatMessage(role="user", content=QUESTION)]


def llm(**options: Any) -> OpenAILike:
    return OpenAILike(
        model="support-assistant",
        api_base=f"{URL}/v1",
        api_key=KEY,
        temperature=0,
        context_window=2048,
        **options,
    )


def embed_model(**options: Any) -> OpenAILikeEmbedding:
    return OpenAILikeEmbedding(
        model_name="support-embed", api_base=f"{URL}/v1", api_key=KEY, **options
    )


def reranker(**options: Any) -> JinaRerank:
    return JinaRerank(
        **({"model": "support-rerank", "base_url": f"{URL}/v1", "api_key": KEY} | options)
    )


@check
def chat() -> Any:
    answer = llm(is_chat_model=True).chat(asked)
    return {"role": answer.message.role, "text": answer.message.content}


@check
def stream_chat() -> Any:
    pieces = list(llm(is_chat_model=True).stream_chat(asked))
    return {"text": "".join(piece.delta or "" for piece in pieces), "pieces": len(pieces)}


@check
def achat() -> Any:
    async def both() -> list[str | None]:
        model = llm(is_chat_model=True)
        whole = await model.achat(asked)
        stream = await model.astream_chat(asked)
        streamed = "".join([piece.delta or "" async for piece in stream])
        return [whole.message.content, streamed]

    return asyncio.run(both())


@check
def complete_of_a_chat_model() -> Any:
    return llm(is_chat_model=True).complete(QUESTION).text


@check
def complete() -> Any:
    """Not said to be a chat model, which is the default: it uses /v1/completions."""
    prompt = "The capital of France is"
    model = llm(max_tokens=6)
    pieces = [piece.delta or "" for piece in model.stream_complete(prompt)]
    return {"text": model.complete(prompt).text, "streamed": "".join(pieces)}


@check
def chat_of_a_completion_model() -> Any:
    return bool(llm(max_tokens=6).chat(asked).message.content)


@check
def tool_call() -> Any:
    def find_order(order: int) -> str:
        """Find an order by its number."""
        return f"order {order} is on its way"

    model = llm(is_chat_model=True, is_function_calling_model=True)
    tool = FunctionTool.from_defaults(find_order)
    answer = model.chat_with_tools([tool], user_msg="Find order 7", tool_required=True)
    return [call.tool_name for call in model.get_tool_calls_from_response(answer)]


@check
def stream_closed_early() -> Any:
    model = llm(
        is_chat_model=True,
        max_tokens=512,
        additional_kwargs={"extra_body": {"ignore_eos": True}},
        default_headers={"X-Request-Id": "llamaindex-closed"},
    )
    pieces = model.stream_chat([ChatMessage(role="user", content=LONG_STORY)])
    seen = [next(pieces).delta for _ in range(5)]
    pieces.close()
    return len(seen)


@check
def error_of_an_unknown_model() -> Any:
    model = OpenAILike(model="nobody", api_base=f"{URL}/v1", api_key=KEY, is_chat_model=True)
    try:
        model.chat(asked)
    except openai.NotFoundError as error:
        return {"code": error.code, "message": str(error)}
    return {}


@check
def embeddings() -> Any:
    model = embed_model(embed_batch_size=2)
    query = model.get_query_embedding("How do I get a refund?")
    texts = model.get_text_embedding_batch(["I want my money back", "The weather is nice", "Hi"])
    again = asyncio.run(model.aget_text_embedding("How do I get a refund?"))
    near, far, _ = (sum(a * b for a, b in zip(query, one, strict=True)) for one in texts)
    return {"dimensions": len(query), "same": again == query, "near": near, "far": far}


@check
def rerank() -> Any:
    nodes = [NodeWithScore(node=TextNode(text=text), score=0.5) for text in PASSAGES]
    ranked = reranker(top_n=5).postprocess_nodes(nodes, query_str="I was charged twice")
    return [(one.node.get_content(), one.score) for one in ranked]


@check
def rerank_error() -> Any:
    """It raises what stands in `detail`, and a KeyError when nothing does."""
    nodes = [NodeWithScore(node=TextNode(text=text)) for text in PASSAGES]
    seen = {}
    for name, wrong in (("model", {"model": "nobody"}), ("key", {"api_key": "my_no_key"})):
        try:
            reranker(**wrong).postprocess_nodes(nodes, query_str="I was charged twice")
        except RuntimeError as error:
            seen[name] = str(error)
    return seen


@check
def question_over_documents() -> Any:
    """The whole of it: an index, a retriever, a reranker, and an answer from what was found."""
    index = VectorStoreIndex.from_documents(
        [Document(text=text) for text in PASSAGES], embed_model=embed_model()
    )
    engine = index.as_query_engine(
        llm=llm(is_chat_model=True, max_tokens=32),
        similarity_top_k=2,
        node_postprocessors=[reranker(top_n=1)],
    )
    answer = engine.query("When are refunds for duplicate charges paid?")
    return {"source": answer.source_nodes[0].node.get_content(), "answered": bool(str(answer))}


if __name__ == "__main__":
    main()
