"""Classifier: label probabilities on torch, batched."""

from collections.abc import Sequence
from typing import Any

from ray.serve import Application

from deployments.door import deployment_of
from deployments.small import Small, dtype_of, parse
from modelyard.config.model_args import SmallModelArgs
from modelyard.contract import small_answers
from modelyard.contract.envelope import Envelope, Item
from modelyard.contract.errors import ArtifactError
from modelyard.contract.operations import Kind, Operation
from modelyard.contract.small import ClassifyRequest
from modelyard.lifecycle.observed import Classified
from modelyard.lifecycle.questions import Question, TextQuestion


class Classifier(Small):
    """Serves one classifier version."""

    KIND = Kind.CLASSIFIER

    def open(self) -> None:
        from modelyard.batching import classify, encode

        limit = self.manifest.limits.max_context_tokens
        self._encoder = encode.Encoder(self.folder, limit, head=True, dtype=dtype_of(self.manifest))
        self._classify = classify.classify
        own = self._encoder.config.id2label
        self._labels = self.manifest.labels or tuple(own[index] for index in range(len(own)))
        if len(self._labels) != len(own):
            raise ArtifactError(
                f"{self.folder}: the manifest names {len(self._labels)} labels, but the head has "
                f"{len(own)}: name each one"
            )

    def compute(self, batch: Sequence[Any]) -> Sequence[Any]:
        return self._classify(self._encoder, batch)

    def warm_body(self, texts: list[str], cut: int) -> dict[str, Any]:
        return {"input": texts, "truncate_prompt_tokens": cut}

    def warm_options(self, texts: list[str]) -> Sequence[tuple[Operation, dict[str, Any]]]:
        return [(Operation.CLASSIFY, {"input": texts})]

    async def observe_numbers(self, question: Question) -> Classified:
        assert isinstance(question, TextQuestion)
        answer = await self.answer_own(Operation.CLASSIFY, {"input": question.text})
        ids = self._encoder.tokenizer.texts([question.text], "input")[0].ids
        probabilities = answer["data"][0]["probs"]
        return Classified(tuple(ids), dict(zip(self._labels, probabilities, strict=True)))

    async def answer(self, envelope: Envelope) -> Item:
        inputs = await self.read(envelope.body, self._prepare)
        self.require_context(envelope, max(tokens for _, tokens in inputs), "input")
        probabilities = await self.batcher.submit_all(inputs)
        return await self.write(
            envelope,
            len(probabilities),
            sum(tokens for _, tokens in inputs),
            lambda head: small_answers.classify(head, probabilities, self._labels),
        )

    def _prepare(self, body: bytes) -> list[tuple[Any, int]]:
        """The tokenised inputs, each with its length. Blocks."""
        request = parse(ClassifyRequest, body)
        texts, cut = request.inputs, request.truncate_prompt_tokens
        tokens = self._encoder.tokenizer.texts(texts, "input", cut)
        return [(one, len(one.ids)) for one in tokens]


deployment = deployment_of(Classifier, max_ongoing_requests=64)


def app(args: SmallModelArgs) -> Application:
    """Serve's builder: `import_path: deployments.classifier:app` with `args: {artifact}`."""
    return deployment.bind(args)
