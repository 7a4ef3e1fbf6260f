"""One whole reading of the board."""

from __future__ import annotations

from dataclasses import dataclass

from modelyard.control.ingress_post import IngressPost, Wish
from modelyard.control.published import Published
from modelyard.lifecycle.report import Post
from modelyard.lifecycle.restarts import Restart


@dataclass(frozen=True, slots=True)
class IngressEntry:
    """An ingress's last post and the seconds since it arrived."""

    post: IngressPost
    age_s: float


@dataclass(frozen=True, slots=True)
class Decided:
    """The scaling policy's last word on an app, before Serve's delays and bounds, and its age."""

    app: str
    replicas: int
    why: str
    age_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Reading:
    """Everything that the board holds, as of one moment.

    wishes: those that have not run out, the largest for each version. published: control's last
    word, None before the first; published_age_s: seconds since control last sent it. up_s: seconds
    that the board itself has run, because one that has just started knows little. decisions: of the
    apps that scale. restarts: counted since the board began. failures: the last one of each app
    in which no replica became ready since; apart from the posts, which are of live replicas.
    """

    posts: tuple[Post, ...]
    ingresses: tuple[IngressEntry, ...]
    wishes: tuple[Wish, ...]
    published: Published | None
    published_age_s: float | None
    up_s: float
    decisions: tuple[Decided, ...] = ()
    restarts: tuple[Restart, ...] = ()
    failures: tuple[Post, ...] = ()
