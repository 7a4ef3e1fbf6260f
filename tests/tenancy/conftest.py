"""Issuers with real keys: making an RSA key takes a tenth of a second."""

from __future__ import annotations

import pytest

from modelyard.tenancy import signing_keys
from modelyard.testing.issuer import InMemoryIssuer


@pytest.fixture(scope="session")
def issuer() -> InMemoryIssuer:
    return InMemoryIssuer()


@pytest.fixture(scope="session")
def rotated() -> InMemoryIssuer:
    """The same issuer after it has changed its keys."""
    return InMemoryIssuer(generation=2)


@pytest.fixture(scope="session")
def other_issuer() -> InMemoryIssuer:
    """Another issuer, which gives its keys the same names."""
    return InMemoryIssuer("https://other.test")


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests of real files and sockets: the machine may be busy with others."""
    monkeypatch.setattr(signing_keys, "WAIT_FOR_KEY_S", 60.0)
    monkeypatch.setattr(signing_keys, "LOAD_WITHIN_S", 60.0)
