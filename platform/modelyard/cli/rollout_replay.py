"""`modelyard rollout replay`: a golden set through both arms, and who was right."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import typer

from modelyard.bench.shorthand import parse_keys
from modelyard.cli.admin_client import AdminClient, url_of
from modelyard.cli.ask_version import AskVersion, NoAnswer
from modelyard.cli.check import Output
from modelyard.cli.replay_text import replay_record, replay_text
from modelyard.config.settings import Settings
from modelyard.contract.errors import ConfigError
from modelyard.rollout.golden_item import GoldenItem
from modelyard.rollout.golden_set import parse_golden_set
from modelyard.rollout.phases import OVER
from modelyard.rollout.replayed import Replayed, judgements

MAX_FILE_BYTES: Final = 64 << 20
POST_AT_ONCE: Final = 200


@dataclass(frozen=True, slots=True)
class Options:
    """api_key: as typed, empty for MODELYARD_API_KEY. post: the answers are judgements."""

    api_key: str
    concurrency: int
    post: bool
    output: Output


def replay(client: AdminClient, view: dict[str, Any], golden: Path, options: Options) -> int:
    """Ask, show and post. 0 when both arms answered every item, else 1.

    Raises ConfigError for a file or a key that is none, AdminRefused when control takes no
    judgements.
    """
    if options.post and view["phase"] in OVER:
        raise ConfigError(
            f"the rollout {view['id']} is {view['phase']} and takes no judgements: use --no-post "
            "to compare only"
        )
    items = parse_golden_set(_read(golden), str(golden))
    settings = Settings.from_environment()
    with _asker(settings, options.api_key) as asker:
        done = ask_all(asker, view, items, options.concurrency)
    if options.output is Output.TEXT:
        typer.echo(replay_text(view, done))
    taken = _post(client, view, judgements(done)) if options.post else 0
    if options.output is Output.JSON:
        typer.echo(json.dumps({"items": replay_record(done), "taken": taken}, indent=2))
    elif options.post:
        typer.echo(
            f"{taken} judgements taken (a set that comes again counts once): "
            f"`modelyard rollout status {view['id']}`"
        )
        if all(gate["gate"] != "quality" for gate in view["gates"]):
            typer.echo("no gate looks at them: add gates.quality to the plan", err=True)
    return 0 if all(one.answered for one in done) else 1


def ask_all(
    asker: AskVersion, view: dict[str, Any], items: Sequence[GoldenItem], concurrency: int
) -> list[Replayed]:
    """Both versions, item by item; an item's two requests follow each other on one thread, so
    that both meet about the same load."""
    with ThreadPoolExecutor(concurrency) as pool:
        return list(
            pool.map(
                lambda numbered: _ask(asker, view, *numbered),
                enumerate(items, 1),
            )
        )


def _ask(asker: AskVersion, view: dict[str, Any], number: int, item: GoldenItem) -> Replayed:
    texts: dict[str, str] = {}
    fault = ""
    for arm in ("stable", "canary"):
        path, body = item.call(view[arm])
        try:
            texts[arm] = item.text_of(asker.post(path, body))
        except NoAnswer as error:
            fault = f"{view[arm]} said {error}"
        except (LookupError, TypeError, ValueError) as error:
            fault = f"{view[arm]} gave no text ({error!r})"
    return Replayed(number, item, texts.get("stable"), texts.get("canary"), fault)


def _post(client: AdminClient, view: dict[str, Any], records: list[dict[str, Any]]) -> int:
    """In parts, so that no body is too large. POST_AT_ONCE is even: a pair is never parted."""
    path = f"/admin/rollouts/{quote(view['id'], safe='')}/judgements"
    parts = (records[at : at + POST_AT_ONCE] for at in range(0, len(records), POST_AT_ONCE))
    bodies = ({"judgements": part, "source": "replay"} for part in parts)
    return sum(int(client.post(path, body)["taken"]) for body in bodies)


def _asker(settings: Settings, typed: str) -> AskVersion:
    [key] = parse_keys([typed]).values() if typed else [settings.api_key]
    if key is None:
        raise ConfigError("set MODELYARD_API_KEY, or give --api-key")
    return AskVersion(url_of(settings), key, time.sleep)


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        data = file.read(MAX_FILE_BYTES + 1)
    if len(data) > MAX_FILE_BYTES:
        raise ConfigError(f"{path} is larger than {MAX_FILE_BYTES >> 20} MiB: split it")
    return data
