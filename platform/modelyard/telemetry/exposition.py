"""One valid exposition text out of those of many processes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_COMMENT: Final = re.compile(r"# (HELP|TYPE) (\S+)")
_NAME: Final = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")


@dataclass(frozen=True, slots=True)
class Scrape:
    """One process's families as prometheus_client writes them, in Prometheus's text format 0.0.4.

    app and replica become labels of every sample; where both are empty, none are added.
    """

    text: str
    app: str = ""
    replica: str = ""

    @property
    def process(self) -> tuple[str, str]:
        return self.app, self.replica


@dataclass(slots=True)
class _Family:
    comments: dict[str, str] = field(default_factory=dict)
    samples: list[str] = field(default_factory=list)


def merged(scrapes: Iterable[Scrape]) -> str:
    """Every sample of every process, under one HELP and TYPE for each family.

    The format wants a family's samples in one place. Nothing is added up: PromQL does that, and
    only unmerged buckets give right percentiles. Works on lines and parses no value: this runs for
    some thousands of them at each scrape.
    """
    families: dict[str, _Family] = {}
    for scrape in scrapes:
        labels = _labels(scrape)
        family = _Family()  # for samples that no comment introduces: prometheus_client writes none
        for line in scrape.text.split("\n"):
            if line.startswith("#"):
                if comment := _COMMENT.match(line):
                    family = families.setdefault(comment[2], _Family())
                    family.comments.setdefault(comment[1], line)
            elif line:
                family.samples.append(_labelled(line, labels))
    lines: list[str] = []
    for family in families.values():
        if family.samples:
            lines += [*family.comments.values(), *family.samples]
    return "\n".join(lines) + "\n" if lines else ""


def _labels(scrape: Scrape) -> str:
    if not scrape.app and not scrape.replica:
        return ""
    return f'app="{_escaped(scrape.app)}",replica="{_escaped(scrape.replica)}"'


def _labelled(line: str, labels: str) -> str:
    if not labels:
        return line
    name = _NAME.match(line)
    assert name is not None, line  # every line that is no comment begins with a name
    rest = line[name.end() :]
    if rest.startswith("{}"):
        return f"{name[0]}{{{labels}}}{rest[2:]}"
    if rest.startswith("{"):
        return f"{name[0]}{{{labels},{rest[1:]}"
    return f"{name[0]}{{{labels}}}{rest}"


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
