import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from modelyard.bench.wire.sse import Event, EventParser

STREAM = (
    ": keep-alive\n"
    'event: delta\ndata: {"text": "größer"}\n\n'
    ": keep-alive\n"
    "data: first\ndata:second\r\n\r\n"
    "id: 4\nretry: 10\n\n"
    "event: done\rdata: x\r\r"
    "data: [DONE]\n\n"
    "data: never ended"
).encode()
EVENTS = [
    Event("delta", '{"text": "größer"}'),
    Event("", "first\nsecond"),
    Event("done", "x"),
    Event("", "[DONE]"),
]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(0, len(STREAM)), max_size=30))
def test_events_are_the_same_wherever_the_bytes_are_cut(cuts: list[int]) -> None:
    places = [0, *sorted(cuts), len(STREAM)]
    parser = EventParser()
    events: list[Event] = []
    for begin, end in itertools.pairwise(places):
        events += parser.feed(STREAM[begin:end])
    assert events == EVENTS


def test_byte_by_byte_too() -> None:
    parser = EventParser()
    assert [event for byte in STREAM for event in parser.feed(bytes([byte]))] == EVENTS
