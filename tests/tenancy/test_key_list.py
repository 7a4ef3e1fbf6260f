from datetime import UTC, datetime, timedelta, timezone

from modelyard.config.tenants import Key
from modelyard.tenancy.key_list import list_keys

NOW = datetime(2027, 1, 31, tzinfo=UTC)
KEYS = (
    Key(id="a-1", tenant="a", sha256="0" * 64),
    Key(id="a-2", tenant="a", sha256="1" * 64, expires=NOW),
    Key(id="a-3", tenant="a", sha256="2" * 64, expires=NOW + timedelta(seconds=1)),
    Key(id="ops", sha256="3" * 64, roles=("admin",), expires=NOW),
)


def test_a_key_is_active_expired_or_revoked_which_beats_the_other_two() -> None:
    states = [line.state for line in list_keys(KEYS, frozenset(), NOW)]
    assert states == ["active", "expired", "active", "expired"]
    states = [line.state for line in list_keys(KEYS, frozenset({"a-1", "ops", "x"}), NOW)]
    assert states == ["revoked", "expired", "active", "revoked"]


def test_a_line_holds_no_hash_and_its_time_is_utc() -> None:
    east = timezone(timedelta(hours=2))
    key = Key(id="a", tenant="t", sha256="0" * 64, expires=datetime(2027, 1, 1, 2, tzinfo=east))
    (line,) = list_keys([key], frozenset(), NOW)
    assert line.as_record() == {
        "id": "a",
        "tenant": "t",
        "roles": ["invoke"],
        "expires": "2027-01-01T00:00:00Z",
        "state": "expired",
    }
