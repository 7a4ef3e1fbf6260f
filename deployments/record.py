"""Record a version's golden prompts: `python -m deployments.record FOLDER [--prompts FILE]`.

A process of its own and no cluster: an engine takes its environment from the process, and holds its
memory until the process ends.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import secrets
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from deployments.replica import Place
from deployments.shell import Shell
from modelyard.artifacts.manifest import Manifest, read_manifest
from modelyard.config.model_args import EngineArgs, GeneratorArgs, SmallModelArgs
from modelyard.contract.errors import ModelyardError
from modelyard.contract.operations import DEPLOYMENT_OF, Kind
from modelyard.lifecycle.golden import Golden, write_golden
from modelyard.lifecycle.questions import DEFAULTS, Question, read_questions
from modelyard.lifecycle.record import golden_of

_SECRET_BYTES: Final = 32


def opened(folder: Path, manifest: Manifest) -> Shell:
    """The shell of a version, without Serve; not loaded yet."""
    name = DEPLOYMENT_OF[manifest.kind]
    shell_type: type[Shell] = getattr(importlib.import_module(f"deployments.{manifest.kind}"), name)
    args: GeneratorArgs | SmallModelArgs = SmallModelArgs(artifact=folder.as_uri())
    if manifest.kind is Kind.GENERATOR:
        devices = manifest.device.accelerators
        engine = EngineArgs(tensor_parallel_size=devices if devices > 1 else None)
        args = GeneratorArgs(artifact=folder.as_uri(), engine=engine)
    shell = shell_type(args)
    shell.adopt(folder, manifest, Place.of_process(), secrets.token_bytes(_SECRET_BYTES))
    return shell


async def recorded(folder: Path, questions: Sequence[Question] | None) -> Golden:
    """Load the version in `folder` and ask it. Raises ArtifactError for answers without numbers."""
    manifest = read_manifest(folder)
    shell = opened(folder, manifest)
    await shell.load()
    asked = questions or DEFAULTS[manifest.kind]
    answered = [(question, await shell.observe(question)) for question in asked]
    return golden_of(manifest, answered)


def main() -> int:
    parser = argparse.ArgumentParser(prog="deployments.record", description=__doc__)
    parser.add_argument("folder", type=Path, help="a packaged version: its manifest.json is read")
    parser.add_argument("--prompts", type=Path, help="a JSON list of questions of its kind")
    given = parser.parse_args()
    folder = given.folder.absolute()
    try:
        questions = None
        if given.prompts is not None:
            questions = read_questions(given.prompts, read_manifest(folder).kind)
        golden = asyncio.run(recorded(folder, questions))
        write_golden(folder, golden)
    except ModelyardError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{len(golden.prompts)} golden prompts in {folder}: its manifest does not list them yet")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
