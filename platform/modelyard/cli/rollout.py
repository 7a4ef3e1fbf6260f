"""`modelyard rollout`: look at rollouts, and move them."""

from __future__ import annotations

import getpass
import json
import time
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias
from urllib.parse import quote

import typer

from modelyard.cli.admin_client import AdminClient, AdminRefused
from modelyard.cli.check import Output
from modelyard.cli.rollout_text import history_lines, status_lines, status_text
from modelyard.cli.rollout_watch import watch
from modelyard.cli.rollout_words import head, outlook
from modelyard.config.settings import Settings

app = typer.Typer(no_args_is_help=True)

Id: TypeAlias = Annotated[str, typer.Argument(metavar="ID", help="As the table names it.")]
Reason: TypeAlias = Annotated[
    str, typer.Option(help="Shown to whoever looks; left out, it names you.")
]
Because: TypeAlias = Annotated[str, typer.Option(help="Why you may; shown to whoever looks.")]
OutputOption: TypeAlias = Annotated[Output, typer.Option("--output", "-o", help="How to print.")]


@app.callback()
def rollout() -> None:
    """Look at rollouts, start, approve, pause and end them, and ask both arms a golden set."""


@app.command()
def start(rollout_id: Id, reason: Reason = "", output: OutputOption = Output.TEXT) -> None:
    """Begin: shadow traffic if the plan has any, else the first step."""
    _do("start", rollout_id, reason, output)


@app.command()
def pause(rollout_id: Id, reason: Reason = "", output: OutputOption = Output.TEXT) -> None:
    """Keep the weight as it is; nothing moves by itself until `resume`."""
    _do("pause", rollout_id, reason, output)


@app.command()
def resume(rollout_id: Id, reason: Reason = "", output: OutputOption = Output.TEXT) -> None:
    """Go on after a pause, at the weight that it has."""
    _do("resume", rollout_id, reason, output)


@app.command()
def approve(rollout_id: Id, reason: Because, output: OutputOption = Output.TEXT) -> None:
    """Go to the next step, which control would not take without a human."""
    _do("approve", rollout_id, reason, output)


@app.command()
def promote(rollout_id: Id, reason: Because, output: OutputOption = Output.TEXT) -> None:
    """Send everything to the canary now, and end the rollout there."""
    _do("promote", rollout_id, reason, output)


@app.command()
def rollback(rollout_id: Id, reason: Reason = "", output: OutputOption = Output.TEXT) -> None:
    """Send everything to the stable version now, for good; what runs on the canary finishes."""
    _do("rollback", rollout_id, reason, output)


@app.command()
def status(
    rollout_id: Annotated[str, typer.Argument(metavar="ID", help="Left out: all.")] = "",
    follow: Annotated[
        bool, typer.Option("--watch", help="Again and again, until its end.")
    ] = False,
    every: Annotated[float, typer.Option(metavar="SECONDS", help="With --watch.", min=0.5)] = 2.0,
    output: OutputOption = Output.TEXT,
) -> None:
    """Show what a rollout does, what it waits for, its arms and its gates.

    With --watch the exit code is 0 when it was promoted, 1 when it ended otherwise.
    """
    if follow and not rollout_id:
        raise typer.BadParameter("name the rollout to watch", param_hint="ID")
    with AdminClient.from_settings(Settings.from_environment()) as client:
        if follow:
            raise typer.Exit(watch(client, _path(rollout_id), every, output, time.sleep))
        if rollout_id:
            view = client.get(_path(rollout_id))
            _say(view, "\n".join(status_lines(view)), output)
        else:
            views = client.get("/admin/rollouts")["rollouts"]
            _say(views, status_text(views), output)


@app.command()
def history(rollout_id: Id, output: OutputOption = Output.TEXT) -> None:
    """Show what was decided, by whom and on which evidence; the oldest first."""
    with AdminClient.from_settings(Settings.from_environment()) as client:
        decisions = client.get(f"{_path(rollout_id)}/history")["decisions"]
    _say(decisions, "\n".join(history_lines(decisions)) or "nothing was decided yet", output)


@app.command()
def replay(
    rollout_id: Id,
    golden: Annotated[Path, typer.Option(metavar="FILE", help="JSON Lines; docs/rollouts.md.")],
    api_key: Annotated[
        str,
        typer.Option(help="A tenant's, with the role evaluate; @FILE reads it. Default: yours."),
    ] = "",
    concurrency: Annotated[int, typer.Option(help="Requests at once.", min=1, max=64)] = 4,
    post: Annotated[bool, typer.Option(help="Count the answers as judgements.")] = True,
    output: OutputOption = Output.TEXT,
) -> None:
    """Ask both arms a golden set, show where they differ, and post who was right.

    Exit code 1 when an item was not answered by both.
    """
    # Numpy comes along with the bench's way to read keys: the other commands should not wait.
    from modelyard.cli.rollout_replay import Options
    from modelyard.cli.rollout_replay import replay as run

    options = Options(api_key, concurrency, post, output)
    with AdminClient.from_settings(Settings.from_environment()) as client:
        view = client.get(_path(rollout_id))
        raise typer.Exit(run(client, view, golden, options))


def _do(verb: str, rollout_id: str, reason: str, output: Output) -> None:
    """Carry out a verb, and say how the rollout stands after it."""
    with AdminClient.from_settings(Settings.from_environment()) as client:
        said = reason or f"{_user()} ran `modelyard rollout {verb}`"
        answer = client.post(f"{_path(rollout_id)}/{verb}", {"reason": said})
        if output is Output.JSON:
            typer.echo(json.dumps(answer, indent=2))
            return
        typer.echo(_done(answer))
        try:
            view = client.get(_path(rollout_id))
        except AdminRefused:  # the verb is done, and that was said
            return
    typer.echo("\n".join(["now " + head(view), *(f"  {line}" for line in outlook(view))]))


def _done(answer: dict[str, Any]) -> str:
    known = _KNOWN[answer["published"], answer.get("stored", True)]
    return (
        f"{answer['id']}: {answer['phase']}, {answer['percent']:g} % on the canary, revision "
        f"{answer['revision']}: {known}"
    )


# By published and stored. Only a rollback is in force before it is stored.
_KNOWN: Final = {
    (True, True): "every ingress has it within a second",
    (False, True): "stored, but the board did not take it yet: control tries again each second",
    (True, False): (
        "every ingress has it within a second, but the store did not take it yet: control tries "
        "again each second"
    ),
    (False, False): (
        "NEITHER the board NOR the store took it yet: ingresses hear of it from control itself "
        "within a second or two, and a control that dies now loses it: run this again until it "
        "says otherwise"
    ),
}


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user may have no name
        return "somebody"


def _path(rollout_id: str) -> str:
    return f"/admin/rollouts/{quote(rollout_id, safe='')}"


def _say(record: Any, text: str, output: Output) -> None:
    typer.echo(json.dumps(record, indent=2) if output is Output.JSON else text)
