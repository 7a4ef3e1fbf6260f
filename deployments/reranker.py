"""Reranker: relevance of passages to a query on torch, batched; the manifest names the kind."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from ray.serve import Application

from deployments.door import deployment_of
from deployments.small import Small, dtype_of, parse
from modelyard.config.model_args import SmallModelArgs
from modelyard.contract import small_answers
from modelyard.contract.envelope import Envelope, Item
from modelyard.contract.errors import ArtifactError
from modelyard.contract.operations import Kind, Operation
from modelyard.contract.small import RerankRequest, ScoreRequest
from modelyard.lifecycle.observed import Ranked
from modelyard.lifecycle.questions import Question, RerankerQuestion


class Reranker(Small):
    """Serves one reranker version, on rerank and on score."""

    KIND = Kind.RERANKER

    def open(self) -> None:
        from modelyard.batching import encode, rank

        kind = self.manifest.score_kind
        if kind is None:
            raise ArtifactError(f"{self.folder}: the manifest of a reranker must have a score_kind")
        ranker, limit = rank.RANKERS[kind], self.manifest.limits.max_context_tokens
        encoder = encode.Encoder(
            self.folder, limit, head=ranker.HEAD, dtype=dtype_of(self.manifest)
        )
        if ranker.HEAD and encoder.config.num_labels != 1:
            raise ArtifactError(
                f"{self.folder}: a cross-encoder has 1 label, this head has "
                f"{encoder.config.num_labels}: serve it as a classifier"
            )
        self._ranker = ranker(encoder)
        self._texts = rank.Texts

    def compute(self, batch: Sequence[Any]) -> Sequence[Any]:
        return self._ranker.compute(batch)

    def warm_body(self, texts: list[str], cut: int) -> dict[str, Any]:
        return {"query": "warm", "documents": texts, "truncate_prompt_tokens": cut}

    def warm_options(self, texts: list[str]) -> Sequence[tuple[Operation, dict[str, Any]]]:
        score = {"text_1": texts[0], "text_2": texts}
        return [
            (Operation.RERANK, {"query": texts[0], "documents": texts, "return_documents": False}),
            (Operation.SCORE, score),
            (Operation.SCORE, {"text_1": texts * 2, "text_2": texts * 2}),
        ]

    async def observe_numbers(self, question: Question) -> Ranked:
        assert isinstance(question, RerankerQuestion)
        documents = list(question.documents)
        body = {"query": question.query, "documents": documents}
        results = (await self.answer_own(Operation.RERANK, body))["results"]
        scores = {one["index"]: one["relevance_score"] for one in results}
        texts = self._texts([question.query], documents, ("query", "documents"))
        pairs = self._ranker.tokenize(texts)
        ids = tuple(tuple(one.ids) for one in (*pairs.left, *pairs.right))
        return Ranked(ids, tuple(scores[index] for index in range(len(documents))))

    async def answer(self, envelope: Envelope) -> Item:
        if envelope.operation == Operation.SCORE:
            fields, pairs = await self.read(envelope.body, self._prepare_score)
            write = small_answers.score
        else:
            fields = ("query", "documents")
            request, pairs = await self.read(envelope.body, self._prepare_rerank)
            write = partial(
                small_answers.rerank,
                documents=request.documents,
                top_n=request.top_n,
                return_documents=request.return_documents is not False,
            )
        for field, texts in zip(fields, (pairs.left, pairs.right), strict=True):
            longest = max(
                (len(one.ids) for one in texts), default=0
            )  # a pair has no left of its own
            self.require_context(envelope, longest, field)
        scores = await self._ranker.scores(self.batcher, pairs)
        return await self.write(
            envelope, len(scores), pairs.count_tokens, lambda head: write(head, scores)
        )

    def _prepare_rerank(self, body: bytes) -> tuple[RerankRequest, Any]:
        """Blocks."""
        request = parse(RerankRequest, body)
        texts = self._texts(
            left=[request.query],
            right=request.documents,
            fields=("query", "documents"),
            cut=request.truncate_prompt_tokens,
            most=request.max_tokens_per_doc,
        )
        return request, self._ranker.tokenize(texts)

    def _prepare_score(self, body: bytes) -> tuple[tuple[str, str], Any]:
        """The names of its two fields, and the pairs. Blocks."""
        request = parse(ScoreRequest, body)
        texts = self._texts(
            left=request.left,
            right=request.right,
            fields=request.fields,
            cut=request.truncate_prompt_tokens,
        )
        return request.fields, self._ranker.tokenize(texts)


deployment = deployment_of(Reranker, max_ongoing_requests=64)


def app(args: SmallModelArgs) -> Application:
    """Serve's builder: `import_path: deployments.reranker:app` with `args: {artifact}`."""
    return deployment.bind(args)
