"""Fixtures that tests of several packages share."""

from __future__ import annotations

import os
from pathlib import Path

import hypothesis
import pytest

from modelyard.artifacts.starter.prepare import prepare_all
from modelyard.config.settings import Settings

# Ray reads it when it is first imported, by whichever test comes first, and the integration tests
# join a cluster that asks for the token.
os.environ["RAY_AUTH_MODE"] = "token"

# No deadline per example: on two shared cores it measures the neighbours.
hypothesis.settings.register_profile("modelyard", deadline=None)
hypothesis.settings.load_profile("modelyard")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--soak-s", type=float, default=600.0, help="seconds of tests/integration/test_soak.py"
    )


@pytest.fixture(scope="session")
def starter_models() -> Path:
    """The folder of the starter models, `<name>/<version>` each; made once a machine, then found.

    The same folder that `make up` fills, so that a test run after it makes nothing.
    """
    models = Settings.from_environment().models
    prepare_all(models, report=lambda line: None)
    return models
