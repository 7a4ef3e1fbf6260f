import hashlib
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modelyard.contract.errors import ConfigError
from modelyard.tenancy.keys import expiry_of, hash_key, key_id, new_key


def test_the_hash_covers_the_whole_key() -> None:
    key = "my_demo-1_abcdefghijklmnop"
    assert hash_key(key) == hashlib.sha256(key.encode()).hexdigest()


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("my_demo-1_abcdefghijklmnop", "demo-1"),
        ("my_a.b_with_underscores_in_it", "a.b"),
        ("my_demo-1_short", None),
        ("my__abcdefghijklmnop", None),
        ("sk-something-else-entirely", None),
        ("my_demo-1_abcdefghijklmnop\n", None),
        ("my_d\u00e9mo_abcdefghijklmnop", None),
        ("", None),
    ],
)
def test_the_id_is_read_from_keys_and_from_nothing_else(key: str, expected: str | None) -> None:
    assert key_id(key) == expected


def test_a_new_key_asks_for_32_random_bytes_and_carries_its_id() -> None:
    asked: list[int] = []

    def random(count: int) -> str:
        asked.append(count)
        return "s" * 43

    assert new_key("team-1", random) == "my_team-1_" + "s" * 43
    assert asked == [32]


@pytest.mark.parametrize("identifier", ["", "under_score", "space d", "a" * 65])
def test_an_id_that_could_not_be_read_back_is_refused(identifier: str) -> None:
    with pytest.raises(ConfigError, match="cannot be the id of a key"):
        new_key(identifier, lambda count: "s" * 43)


@settings(deadline=None)
@given(
    identifier=st.from_regex(r"[A-Za-z0-9.-]{1,64}", fullmatch=True),
    secret=st.from_regex(r"[A-Za-z0-9_-]{43}", fullmatch=True),
)
def test_every_new_key_gives_its_id_back(identifier: str, secret: str) -> None:
    assert key_id(new_key(identifier, lambda count: secret)) == identifier


NOW = datetime(2026, 11, 30, 12, 0, 0, 999, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("12h", datetime(2026, 12, 1, tzinfo=UTC)),
        ("30d", datetime(2026, 12, 30, 12, tzinfo=UTC)),
        ("2w", datetime(2026, 12, 14, 12, tzinfo=UTC)),
        ("2027-01-31", datetime(2027, 1, 31, tzinfo=UTC)),
        ("2027-01-31T10:00:00+02:00", datetime(2027, 1, 31, 8, tzinfo=UTC)),
        ("2027-01-31T10:00:00Z", datetime(2027, 1, 31, 10, tzinfo=UTC)),
    ],
)
def test_an_expiry_is_a_span_or_a_date(text: str, expected: datetime) -> None:
    assert expiry_of(text, NOW) == expected


@pytest.mark.parametrize(
    "text", ["", "30", "d", "0d", "-3d", "3m", "tomorrow", "2027-13-01", "1 d"]
)
def test_what_is_no_expiry_says_how_to_write_one(text: str) -> None:
    with pytest.raises(ConfigError, match="write 30d"):
        expiry_of(text, NOW)


@pytest.mark.parametrize("text", ["999999w", "2026-11-30", "2020-01-01"])
def test_an_expiry_that_is_over_or_beyond_all_calendars_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="30d"):
        expiry_of(text, NOW)


@given(hours=st.integers(1, 10_000))
def test_a_span_ends_that_much_later(hours: int) -> None:
    expected = (NOW + timedelta(hours=hours)).replace(microsecond=0)
    assert expiry_of(f"{hours}h", NOW) == expected
