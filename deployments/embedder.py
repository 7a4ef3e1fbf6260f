"""Embedder: sentence embeddings on torch, batched."""

from collections.abc import Sequence
from typing import Any

from ray.serve import Application

from deployments.door import deployment_of
from deployments.small import Small, dtype_of, parse
from modelyard.config.model_args import SmallModelArgs
from modelyard.contract import small_answers
from modelyard.contract.envelope import Envelope, Item
from modelyard.contract.errors import InvalidRequest
from modelyard.contract.operations import Kind, Operation
from modelyard.contract.small import EmbeddingsRequest
from modelyard.lifecycle.observed import Embedded
from modelyard.lifecycle.questions import Question, TextQuestion


class Embedder(Small):
    """Serves one embedder version."""

    KIND = Kind.EMBEDDER

    def open(self) -> None:
        from modelyard.batching import embed, encode

        self._encoder = encode.Encoder(
            self.folder,
            self.manifest.limits.max_context_tokens,
            dtype=dtype_of(self.manifest),
        )
        self._embed = embed

    def compute(self, batch: Sequence[Any]) -> Sequence[Any]:
        return self._embed.embed(self._encoder, batch)

    def warm_body(self, texts: list[str], cut: int) -> dict[str, Any]:
        return {"input": texts, "truncate_prompt_tokens": cut}

    def warm_options(self, texts: list[str]) -> Sequence[tuple[Operation, dict[str, Any]]]:
        ids = self._encoder.tokenizer.texts(texts, "input")[0].ids
        return [
            (Operation.EMBED, {"input": texts, "encoding_format": "float", "dimensions": 8}),
            (Operation.EMBED, {"input": texts, "encoding_format": "base64"}),
            (Operation.EMBED, {"input": ids}),
        ]

    async def observe_numbers(self, question: Question) -> Embedded:
        assert isinstance(question, TextQuestion)
        answer = await self.answer_own(Operation.EMBED, {"input": question.text})
        ids = self._encoder.tokenizer.texts([question.text], "input")[0].ids
        return Embedded(tuple(ids), tuple(answer["data"][0]["embedding"]))

    async def answer(self, envelope: Envelope) -> Item:
        request, inputs = await self.read(envelope.body, self._prepare)
        self.require_context(envelope, max(tokens for _, tokens in inputs), "input")
        vectors = await self.batcher.submit_all(inputs)
        return await self.write(
            envelope,
            len(vectors),
            sum(tokens for _, tokens in inputs),
            lambda head: small_answers.embeddings(head, vectors, request.encoding_format),
        )

    def _prepare(self, body: bytes) -> tuple[EmbeddingsRequest, list[tuple[Any, int]]]:
        """The request and its tokenised inputs, each with its length. Blocks."""
        request = parse(EmbeddingsRequest, body)
        most = self._encoder.dimensions
        if request.dimensions is not None and request.dimensions > most:
            raise InvalidRequest(
                f"dimensions is {request.dimensions}, this model has {most}: ask for no more",
                param="dimensions",
            )
        tokenizer, cut = self._encoder.tokenizer, request.truncate_prompt_tokens
        if (texts := request.texts) is not None:
            tokens = tokenizer.texts(texts, "input", cut)
        else:
            tokens = tokenizer.given(request.token_ids, "input", cut)
        make = self._embed.EmbedInput
        return request, [(make(one, request.dimensions), len(one.ids)) for one in tokens]


deployment = deployment_of(Embedder, max_ongoing_requests=64)


def app(args: SmallModelArgs) -> Application:
    """Serve's builder: `import_path: deployments.embedder:app` with `args: {artifact}`."""
    return deployment.bind(args)
