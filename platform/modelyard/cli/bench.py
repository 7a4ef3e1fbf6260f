"""`modelyard bench`: put load on a server, this platform or any other, and measure it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final

import typer

from modelyard.bench.retry import RetryKind
from modelyard.cli.check import Output

app = typer.Typer(add_completion=False)


class Route(StrEnum):
    GENERATE = "generate"
    CHAT = "chat"
    COMPLETIONS = "completions"
    RESPONSES = "responses"
    EMBEDDINGS = "embeddings"
    RERANK = "rerank"
    CLASSIFY = "classify"
    SCORE = "score"


class Spacing(StrEnum):
    POISSON = "poisson"
    CONSTANT = "constant"
    BURSTS = "bursts"


_LENGTH: Final = "128, uniform:LOW,HIGH, lognormal:MEDIAN,SIGMA[,MAX] or trace:FILE."


def _finite(value: float | None) -> float | None:
    """A range without an upper end lets `inf` through."""
    if value is not None and not math.isfinite(value):
        raise typer.BadParameter("must be a finite number")
    return value


Text = str | None
Number = float | None
JsonFile = Annotated[Path | None, typer.Option("--json", help="Write the result here.")]
HtmlFile = Annotated[Path | None, typer.Option("--html", help="Write a page with plots here.")]
Format = Annotated[Output, typer.Option("--output", "-o", help="How to print.")]


@dataclass(frozen=True, slots=True)
class Outputs:
    """Where the result goes, beside the terminal."""

    json_file: Path | None
    html_file: Path | None
    output: Output


@app.callback(invoke_without_command=True)
def bench(
    context: typer.Context,
    url: Annotated[Text, typer.Option(help="Default: MODELYARD_URL, else the local one.")] = None,
    api_key: Annotated[
        list[str] | None,
        typer.Option(help="KEY, or TENANT=KEY for each tenant; @FILE reads it from a file."),
    ] = None,
    workload: Annotated[
        Path | None,
        typer.Option(
            help="YAML: tenants, mixes. Not with --steps or what else describes one stream."
        ),
    ] = None,
    route: Annotated[Route | None, typer.Option(help="What to ask for.")] = None,
    model: Annotated[Text, typer.Option(help="What to write in `model`.")] = None,
    rate: Annotated[
        Text,
        typer.Option(
            help="Requests a second: 5, or to sweep 1,2,4 or 1:10:0.5. "
            "With --steps, --replay or --workload: their new mean, all scaled to it."
        ),
    ] = None,
    arrivals: Annotated[Spacing | None, typer.Option(help="Default: poisson.")] = None,
    steps: Annotated[
        Text, typer.Option(help="26@120,14@180: /s for seconds; 5-50@60. Not with --workload.")
    ] = None,
    replay: Annotated[Text, typer.Option(help="CSV: offset_s,input_tokens,output_tokens.")] = None,
    input_tokens: Annotated[Text, typer.Option(help=_LENGTH)] = None,
    output_tokens: Annotated[Text, typer.Option(help="Likewise.")] = None,
    stream: Annotated[bool | None, typer.Option(help="Default: --stream.")] = None,
    items: Annotated[int | None, typer.Option(min=1, help="Texts of a request.")] = None,
    extra_body: Annotated[Text, typer.Option(help="JSON object; null removes a field.")] = None,
    deadline_ms: Annotated[int | None, typer.Option(min=1)] = None,
    duration: Annotated[
        Number, typer.Option(min=0.1, callback=_finite, help="Seconds a rate; 60.")
    ] = None,
    warmup: Annotated[
        Number, typer.Option(min=0, callback=_finite, help="Its first seconds, left out.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="The same one, the same load.")] = None,
    slo: Annotated[Text, typer.Option(help="ttft=1s,e2e=10s,itl=100ms, any of them.")] = None,
    goodput_percent: Annotated[
        float,
        typer.Option(min=1, max=100, help="Good of offered, for the knee."),
    ] = 95.0,
    all_rates: Annotated[bool, typer.Option("--all-rates", help="Go on past the knee.")] = False,
    retry: Annotated[RetryKind, typer.Option(help="What to do when refused.")] = RetryKind.NONE,
    max_attempts: Annotated[int, typer.Option(min=1, help="With the first one.")] = 4,
    timeout: Annotated[
        float, typer.Option(min=0.1, callback=_finite, help="Seconds for an attempt.")
    ] = 60.0,
    connections: Annotated[int | None, typer.Option(min=1, help="At most; default: any.")] = None,
    new_connections: Annotated[
        bool, typer.Option("--new-connections", help="One for each request.")
    ] = False,
    closed_loop: Annotated[
        int | None, typer.Option(min=1, help="So many users in turn, to compare; hides waits.")
    ] = None,
    json_file: JsonFile = None,
    html_file: HtmlFile = None,
    output: Format = Output.TEXT,
) -> None:
    """Load in the open loop: sent on schedule, measured from when each request was due.

    Exit code 1 when no request completed. Ctrl-C shows what was measured so far.
    """
    if context.invoked_subcommand is not None:
        return
    # Numpy, an HTTP client and more: the other commands should not wait for them.
    from modelyard.bench.request import Flags
    from modelyard.cli.bench_run import run

    run(
        Flags(
            workload, route, model, rate, arrivals, steps, replay, input_tokens, output_tokens,
            stream, items, extra_body, deadline_ms, slo, seed, duration, warmup,
        ),
        url,
        api_key or (),
        Outputs(json_file, html_file, output),
        goodput_percent=goodput_percent,
        all_rates=all_rates,
        retry=retry,
        max_attempts=max_attempts,
        timeout_s=timeout,
        connections=connections,
        new_connections=new_connections,
        closed_loop_users=closed_loop,
    )  # fmt: skip


@app.command()
def merge(
    files: Annotated[list[Path], typer.Argument(metavar="A.json B.json ...")],
    json_file: JsonFile = None,
    html_file: HtmlFile = None,
    output: Format = Output.TEXT,
) -> None:
    """Make one result of several: of generators at the same time, or of repeats."""
    from modelyard.cli.bench_run import merge_files

    merge_files(files, Outputs(json_file, html_file, output))
