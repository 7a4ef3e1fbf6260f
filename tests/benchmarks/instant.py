"""The real path over an engine that costs nothing: the generator shell without vLLM."""

import asyncio
import json
import math
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, Final, NamedTuple

from pydantic import BaseModel
from ray.serve import Application

from deployments import vllm_engine
from deployments.door import deployment_of
from deployments.generator import Generator
from modelyard.artifacts.manifest import Limits
from modelyard.config.model_args import SmallModelArgs
from modelyard.contract.envelope import Envelope
from modelyard.contract.operations import Kind
from modelyard.testing.tiny_model import write_tiny_model

NAME: Final = "instant"
VERSION: Final = "1.0.0"
CHUNK: Final = (
    'data: {"id":"chatcmpl-0123456789abcdef0123456789abcdef","object":"chat.completion.chunk",'
    f'"created":1700000000,"model":"{NAME}@{VERSION}","choices":[{{"index":0,"delta":'
    '{"content":" word"},"logprobs":null,"finish_reason":null,"token_ids":null}]}\n\n'
)


class Script(NamedTuple):
    """What a request asks of the engine: so many items, one each `step_ms` (0: at once)."""

    items: int
    step_ms: float

    def body(self, *, stream: bool) -> str:
        """The request that `script_of` reads back."""
        content = f"{self.items} {self.step_ms:g}"
        record = {
            "model": NAME,
            "messages": [{"role": "user", "content": content}],
            "max_tokens": 64,
            "stream": stream,
        }
        return json.dumps(record)


def script_of(body: bytes) -> Script:
    items, step_ms = json.loads(body)["messages"][0]["content"].split()
    return Script(int(items), float(step_ms))


async def chunks_of(script: Script) -> AsyncGenerator[str]:
    """The script's chunks. Paced ones come at the same moments for every stream, as those of one
    engine's steps do."""
    now = asyncio.get_running_loop().time
    step_s = script.step_ms / 1000
    at = now()
    for _ in range(script.items):
        if step_s:
            at = (math.floor(at / step_s + 0.01) + 1) * step_s
            await asyncio.sleep(at - now())
        yield CHUNK


class Message(BaseModel):
    role: str = "assistant"
    content: str = " word" * 16


class Choice(BaseModel):
    index: int = 0
    message: Message = Message()
    finish_reason: str = "stop"


class ChatAnswer(BaseModel):
    """Stands for vLLM's ChatCompletionResponse."""

    id: str = "chatcmpl-0123456789abcdef0123456789abcdef"
    object: str = "chat.completion"
    created: int = 1700000000
    model: str = f"{NAME}@{VERSION}"
    choices: list[Choice] = [Choice()]
    usage: dict[str, int] = {"prompt_tokens": 8, "completion_tokens": 16, "total_tokens": 24}


class Instant(Generator):
    """Everything of the generator's shell but the engine and vLLM's serving layer."""

    async def load(self) -> None:
        return

    async def warm(self) -> None:
        return

    async def check_health(self) -> None:
        """Without an engine that could be asked."""
        self._reporter.require_posting()

    async def _submit(self, envelope: Envelope) -> Any:
        meter = vllm_engine.meter_of_request.get()
        assert meter is not None
        if envelope.stream:
            return self._counted(script_of(envelope.body), meter)
        meter.output_tokens = script_of(envelope.body).items
        return ChatAnswer()

    async def _counted(self, script: Script, meter: vllm_engine.Meter) -> AsyncGenerator[str]:
        async for chunk in chunks_of(script):
            meter.output_tokens += 1
            yield chunk


def write_artifact(folder: Path) -> None:
    """A folder that passes every check, though nothing ever computes with its weights."""
    limits = Limits(max_context_tokens=4096, max_output_tokens=1024, drain_s=60)
    write_tiny_model(
        folder,
        name=NAME,
        version=VERSION,
        kind=Kind.GENERATOR,
        limits=limits,
        source="tests/benchmarks/instant.py",
    )


deployment = deployment_of(Instant, max_ongoing_requests=1000)


def app(args: SmallModelArgs) -> Application:
    """Serve's builder: `import_path: tests.benchmarks.instant:app`."""
    return deployment.bind(args)
