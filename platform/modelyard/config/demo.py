"""The demonstration keys. They are printed in the README: everybody knows them.

`modelyard check` refuses to publish a table that accepts them on anything but loopback.
"""

from __future__ import annotations

from typing import Final

from modelyard.tenancy.keys import hash_key

DEMO_KEY: Final = "my_demo-1_public-demonstration-key"
NIGHTLY_KEY: Final = "my_nightly-1_public-demonstration-key"
OPS_KEY: Final = "my_ops-1_public-demonstration-key"

DEMO_KEYS: Final = (DEMO_KEY, NIGHTLY_KEY, OPS_KEY)
DEMO_KEY_HASHES: Final = frozenset(hash_key(key) for key in DEMO_KEYS)
