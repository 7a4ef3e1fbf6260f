"""One streamed chat by the openai client that is installed: a line for each piece, then its end.

The test pauses the engine in the middle, so that the client meets the platform's keep-alive.
"""

from __future__ import annotations

import json
import os

import openai

client = openai.OpenAI(
    base_url=f"{os.environ['MODELYARD_URL']}/v1", api_key=os.environ["MODELYARD_API_KEY"]
)
finish_reason = None
for chunk in client.chat.completions.create(
    model="support-assistant",
    messages=[{"role": "user", "content": "Tell me a very long story about a dog."}],
    max_tokens=400,
    extra_body={"ignore_eos": True},
    stream=True,
):
    finish_reason = chunk.choices[0].finish_reason
    print(json.dumps({"piece": chunk.choices[0].delta.content}), flush=True)
print(json.dumps({"finish_reason": finish_reason}), flush=True)
