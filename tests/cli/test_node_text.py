"""How `modelyard status` and `up` tell the nodes of an emulated fleet."""

from __future__ import annotations

from dataclasses import replace

import psutil

from cluster.node_processes import StartedNode
from cluster.ports import LocalPorts
from cluster.running import Running
from modelyard.cli.node_text import node_lines, node_record


def running(*nodes: StartedNode) -> Running:
    return Running("r", 1, 0.0, LocalPorts(), 8000, True, nodes=nodes)


def a_node() -> StartedNode:
    this = psutil.Process()
    return StartedNode("a", 1, this.pid, this.create_time(), "/tmp/n1")


def test_a_node_is_told_with_the_pid_that_stands_for_it_or_as_lost() -> None:
    here = a_node()
    gone = replace(here, place="b", created=here.created - 1000)
    [_, first, second] = node_lines(running(here, gone))
    assert f"pid {here.raylet}" in first
    assert "/tmp/n1/session_latest/logs/serve" in first
    assert "lost" in second


def test_json_says_who_is_alive() -> None:
    [record] = node_record(running(a_node()))["nodes"]
    assert (record["place"], record["alive"]) == ("a", True)


def test_a_platform_of_one_node_says_nothing_of_nodes() -> None:
    assert list(node_lines(running())) == []
    assert node_record(running()) == {}
