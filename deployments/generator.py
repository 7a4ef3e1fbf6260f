"""Generator: a vLLM engine behind the shell. A stream of items for every operation."""

import asyncio
import importlib
import json
import logging
import os
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager
from typing import Any

from prometheus_client.registry import Collector
from ray.serve import Application

from deployments import traced, vllm_engine, vllm_requests, vllm_responses
from deployments.coalesce import coalesced
from deployments.door import deployment_of
from deployments.engine_words import EngineWords
from deployments.shell import Shell
from deployments.vllm_golden import generated, golden_request
from deployments.vllm_progress import EngineProcesses, progress_logger
from deployments.vllm_tools import refuse_unseen_tools
from modelyard.config.model_args import GeneratorArgs
from modelyard.contract import native
from modelyard.contract.envelope import Answer, Envelope, Item
from modelyard.contract.errors import RequestError, StartError
from modelyard.contract.features import require_features
from modelyard.contract.operations import Kind, Operation
from modelyard.lazy_timeout import LazyTimeout
from modelyard.lifecycle.filler import Filler
from modelyard.lifecycle.observed import Generated
from modelyard.lifecycle.questions import GeneratorQuestion, Question
from modelyard.lifecycle.warm import WarmRequest, generator_rounds
from modelyard.lifecycle.watchdog import Evidence
from modelyard.telemetry.replica_metrics import EngineMetrics
from modelyard.tenancy.claim import cache_salt

log = logging.getLogger("modelyard.generator")


class Generator(Shell):
    """Serves one generator version."""

    KIND = Kind.GENERATOR
    _engine: Any = None

    def __init__(self, args: Any) -> None:
        super().__init__(args)
        self._processes = EngineProcesses()

    async def load(self) -> None:
        gpu = self.place.gpus > 0
        vllm_engine.set_environment(gpu=gpu)
        words = EngineWords()
        # Seconds of imports on a thread: the loop is Serve's own, and would miss its deadlines.
        await asyncio.to_thread(importlib.import_module, "vllm.v1.engine.async_llm")
        try:
            self._engine, self._state = await vllm_engine.start_engine(
                self.folder,
                self.manifest,
                self.args.engine,
                self.description,
                gpu=gpu,
                stat_loggers=[progress_logger(self.progress)],
            )
        except Exception as error:
            cause = await asyncio.to_thread(words.last_error) or str(error) or repr(error)
            raise StartError(f"the engine did not start: {cause}") from error

    async def warm(self) -> None:
        encode = self._engine.get_tokenizer().encode
        filler = Filler(lambda text: encode(text, add_special_tokens=False))
        for together in generator_rounds(self.manifest, filler):
            began = time.monotonic()
            # Of the last round alone: what a first use costs is no part of a later step.
            self.progress.longest_step_s = 0.0
            with self.progress.measured():
                await asyncio.gather(*(self._warm_one(one) for one in together))
            log.info("warm-up: %s took %.2f s", together[0].name, time.monotonic() - began)

    async def _warm_one(self, request: WarmRequest) -> None:
        envelope = self.own_envelope(request.operation, json.dumps(request.body).encode())
        await self.answer(envelope)

    async def observe(self, question: Question) -> Generated:
        assert isinstance(question, GeneratorQuestion)
        chats = self.manifest.tokenizer.chat_template_sha256 is not None
        operation, body = golden_request(question, chats=chats)
        envelope = self.own_envelope(operation, json.dumps(body).encode())
        self._meter_of(envelope)
        return generated(await self._submit(envelope))

    async def check_health(self) -> None:
        """Serve calls this. A dead engine cannot be revived in place: this process must go."""
        if self._engine.errored:
            self._die("the engine process is gone")
        await self._engine.check_health()
        await super().check_health()

    def evidence(self) -> Evidence:
        busy = self._engine is not None and bool(self._engine.get_num_unfinished_requests())
        # A process that waits for a hung GPU spins: what it burns proves nothing.
        cpu_s = None if self.place.gpus else self._processes.cpu_s()
        return Evidence(self.progress.steps, busy, cpu_s)

    def kill_engine(self) -> None:
        self._processes.kill()

    def collectors(self) -> tuple[Collector, ...]:
        return (EngineMetrics(),)

    def ongoing(self) -> int:
        """Ours, or what the engine still works on after every caller has left: none, unless it
        missed a cancellation."""
        if self._engine is None:
            return super().ongoing()
        return super().ongoing() or int(self._engine.get_num_unfinished_requests())

    def admit(self, envelope: Envelope) -> None:
        super().admit(envelope)
        features = self.claim_of(envelope).features
        if features is not None:  # or the body would be read for nothing
            operation = Operation(envelope.operation)
            require_features(features, operation, json.loads(envelope.body))

    async def answer(self, envelope: Envelope) -> Item:
        meter = self._meter_of(envelope)
        if envelope.operation == Operation.GENERATE:
            return await self._answer_native(envelope, meter)
        response = await self._submit(envelope)
        if envelope.operation == Operation.RESPONSES:
            data = vllm_responses.answer_json(response, envelope.model_alias)
        else:
            data = vllm_requests.answer_json(response, envelope.model_alias)
        return Item(data, meter.output_tokens, meter.usage())

    async def stream(self, envelope: Envelope) -> AsyncGenerator[Answer]:
        """Items as the engine makes them; the last carries `final`, or is a Failure."""
        self._ongoing += 1
        timeout = LazyTimeout()
        try:
            self.admit(envelope)
            traced.enter("engine")
            deadline = asyncio.get_running_loop().time() + envelope.budget_ms / 1000
            async with aclosing(coalesced(self._items(envelope))) as items:
                while True:
                    with timeout.until(deadline):
                        item = await anext(items, None)
                    if item is None:
                        return
                    yield item
        except Exception as error:  # noqa: BLE001  the edge of the process: map, log, never leak
            yield self.failure(error, envelope)
        finally:
            timeout.close()
            self._ongoing -= 1

    async def _items(self, envelope: Envelope) -> AsyncGenerator[Item]:
        meter = self._meter_of(envelope)
        to_bytes = self._writer(envelope)
        sent_tokens = 0
        async with aclosing(await self._submit(envelope)) as chunks:
            async for chunk in chunks:
                self._raise_for(chunk, envelope)
                # vLLM's own [DONE] is dropped: it sends one after an error too. The ingress ends.
                if chunk == vllm_requests.DONE:
                    continue
                data = to_bytes(chunk)
                if data or meter.output_tokens > sent_tokens:
                    yield Item(data, meter.output_tokens - sent_tokens)
                    sent_tokens = meter.output_tokens
        usage = meter.usage()
        last = b""
        if envelope.operation == Operation.GENERATE:
            last = native.done_event(self.manifest.full_name, usage)
        yield Item(last, meter.output_tokens - sent_tokens, usage)

    def _meter_of(self, envelope: Envelope) -> vllm_engine.Meter:
        """A meter for this request, which the engine finds by the context it is called in."""
        param = vllm_requests.input_of(envelope.operation)
        meter = vllm_engine.Meter(
            lambda tokens, cap: self.require_context(envelope, tokens, param, cap)
        )
        vllm_engine.meter_of_request.set(meter)
        return meter

    async def _answer_native(self, envelope: Envelope, meter: vllm_engine.Meter) -> Item:
        texts: list[str] = []
        async with aclosing(await self._submit(envelope)) as chunks:
            async for chunk in chunks:
                self._raise_for(chunk, envelope)
                texts.append(vllm_requests.text_of_chunk(chunk))
        usage = meter.usage()
        data = native.answer(envelope.answer_id, self.manifest.full_name, "".join(texts), usage)
        return Item(data, usage.output_tokens, usage)

    def _raise_for(self, chunk: str, envelope: Envelope) -> None:
        """Raise what an error chunk says; vLLM sends one in place of raising once it streams."""
        if vllm_requests.is_error_chunk(chunk):
            self._die_if_engine_is_dead()
            raise vllm_requests.error_of_chunk(chunk, envelope.operation)

    def _writer(self, envelope: Envelope) -> Any:
        """From a vLLM chunk to the client's bytes: native events, or its chunk under our alias."""
        if envelope.operation == Operation.GENERATE:
            return vllm_requests.NativeWriter()
        if envelope.operation == Operation.RESPONSES:
            return str.encode  # its events carry the alias already
        return vllm_requests.alias_writer(self.manifest.full_name, envelope.model_alias)

    async def _submit(self, envelope: Envelope) -> Any:
        """Hand the request to vLLM: a response, or an async generator of SSE strings."""
        raw = vllm_requests.raw_request(envelope)
        ours = {
            "model": self.manifest.full_name,
            "stream": envelope.stream,
            "cache_salt": cache_salt(self.claim_of(envelope).tenant, self._secret),
        }
        with self._mapping_errors(envelope):
            make, serve = self._served(envelope)
            request = make(envelope, ours)
            refuse_unseen_tools(request, self._engine.get_tokenizer())
            result = await serve(request, raw)
        if (error_object := getattr(result, "error", None)) is not None:
            _raise_if_cancelled()
            self._die_if_engine_is_dead()
            raise vllm_requests.from_error_object(error_object.model_dump(), envelope.operation)
        if envelope.operation == Operation.RESPONSES and envelope.stream:
            return self._responses_texts(result, envelope)
        return result

    def _served(self, envelope: Envelope) -> tuple[Any, Any]:
        """What makes vLLM's request of an operation, and what of its serving layer answers it."""
        chat = self._state.openai_serving_chat.create_chat_completion
        match envelope.operation:
            case Operation.COMPLETIONS:
                completion = self._state.openai_serving_completion.create_completion
                return vllm_requests.completion_request, completion
            case Operation.RESPONSES:
                responses = self._state.openai_serving_responses.create_responses
                return vllm_responses.responses_request, responses
            case Operation.GENERATE:
                return vllm_requests.native_request, chat
            case _:
                return vllm_requests.chat_request, chat

    async def _responses_texts(
        self, events: AsyncGenerator[Any], envelope: Envelope
    ) -> AsyncGenerator[str]:
        """Here vLLM raises in mid-stream, where its other routes send an error chunk."""
        with self._mapping_errors(envelope):
            async with aclosing(vllm_responses.sse_texts(events, envelope.model_alias)) as texts:
                async for text in texts:
                    yield text

    @contextmanager
    def _mapping_errors(self, envelope: Envelope) -> Iterator[None]:
        """What vLLM raises about a request, as an error of ours; a dead engine ends the process."""
        try:
            yield
        except RequestError:
            raise
        except Exception as error:
            self._die_if_engine_is_dead(error)
            mapped = vllm_requests.from_vllm(error, envelope.operation, envelope.body)
            if mapped is not None:
                raise mapped from error
            raise

    def _die_if_engine_is_dead(self, error: Exception | None = None) -> None:
        from vllm.v1.engine.exceptions import EngineDeadError

        if isinstance(error, EngineDeadError) or self._engine.errored:
            self._die("the engine died under a request")

    def _die(self, cause: str) -> None:
        """Leave at once: Serve replaces a dead actor in a second, an unhealthy one in many."""
        log.critical("%s leaves for a replacement: %s", self._app, cause)
        self.kill_engine()  # workers of a dead engine would keep the device's memory
        logging.shutdown()
        os._exit(1)


def _raise_if_cancelled() -> None:
    """vLLM swallows the cancellation of a unary call and answers an error object in its place."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError


deployment = deployment_of(Generator, max_ongoing_requests=40)


def app(args: GeneratorArgs) -> Application:
    """Serve's builder: `import_path: deployments.generator:app` with `args: {artifact, engine}`."""
    return deployment.bind(args)
