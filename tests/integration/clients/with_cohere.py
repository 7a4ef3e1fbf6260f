"""Cohere's client: rerank of its version 2 API and of its first one."""

from __future__ import annotations

import asyncio
from typing import Any

import cohere
from checks import KEY, PASSAGES, URL, check, main

QUERY = "I was charged twice"
MODEL = "support-rerank"


@check
def rerank() -> Any:
    answer = cohere.ClientV2(api_key=KEY, base_url=URL).rerank(
        model=MODEL, query=QUERY, documents=PASSAGES, top_n=9, max_tokens_per_doc=4096
    )
    return {
        "order": [one.index for one in answer.results],
        "scores": [one.relevance_score for one in answer.results],
        "id": answer.id,
    }


@check
def rerank_cut_to_the_best() -> Any:
    answer = cohere.ClientV2(api_key=KEY, base_url=URL).rerank(
        model=MODEL, query=QUERY, documents=PASSAGES, top_n=1
    )
    return [one.index for one in answer.results]


@check
def rerank_async() -> Any:
    async def ask() -> list[int]:
        async with cohere.AsyncClientV2(api_key=KEY, base_url=URL) as client:
            answer = await client.rerank(model=MODEL, query=QUERY, documents=PASSAGES)
        return [one.index for one in answer.results]

    return asyncio.run(ask())


@check
def rerank_of_the_first_api() -> Any:
    """/v1/rerank, with documents as records, which come back with the answer."""
    answer = cohere.Client(api_key=KEY, base_url=URL).rerank(
        model=MODEL,
        query=QUERY,
        documents=[{"text": text} for text in PASSAGES],
        return_documents=True,
    )
    return [(one.index, one.document.text if one.document else None) for one in answer.results]


@check
def error_of_a_wrong_key() -> Any:
    try:
        cohere.ClientV2(api_key="my_no_key", base_url=URL).rerank(
            model=MODEL, query=QUERY, documents=PASSAGES
        )
    except cohere.UnauthorizedError as error:
        return {"status": error.status_code, "body": error.body}
    return {}


@check
def error_of_an_unknown_model() -> Any:
    try:
        cohere.ClientV2(api_key=KEY, base_url=URL).rerank(
            model="nobody", query=QUERY, documents=PASSAGES
        )
    except cohere.NotFoundError as error:
        return {"status": error.status_code, "body": error.body}
    return {}


@check
def error_of_no_documents() -> Any:
    try:
        cohere.ClientV2(api_key=KEY, base_url=URL).rerank(model=MODEL, query=QUERY, documents=[])
    except cohere.BadRequestError as error:
        return {"status": error.status_code, "body": error.body}
    return {}


if __name__ == "__main__":
    main()
