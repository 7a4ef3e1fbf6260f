"""Reading a workload file."""

from __future__ import annotations

from pathlib import Path

from modelyard.config.checked import parse
from modelyard.config.document import load_document
from modelyard.contract.errors import ConfigError
from modelyard.workload.mix import Workload
from modelyard.workload.trace import Traces, read_traces


def load_workload(path: Path) -> tuple[Workload, Traces]:
    """The workload and its traces, which it names from its own folder.

    Raises ConfigError: a line for each fault, with file, line, field, value and what to do.
    """
    document = load_document(path, kind="a workload", key="streams")
    workload, faults = parse(document, Workload, document.root, ())
    if workload is None or faults:
        raise ConfigError("\n".join(map(str, faults)))
    return workload, read_traces(workload.trace_files(), path.parent)
