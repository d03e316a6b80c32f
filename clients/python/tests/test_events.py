from __future__ import annotations

import pytest

from medley_client import MedleyError
from medley_client._sse import EventReader

text = (
    ': ping\r\n\r\ndata: {"a": "é"}\r\n\r\nevent: x\ndata: one\ndata:two\n\n'
    "data:\n\n\n\ndata: [DONE]\n\ndata: unfinished"
)
expected = ['{"a": "é"}', "one\ntwo", "", "[DONE]"]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_are_the_same_wherever_their_bytes_are_cut(size: int) -> None:
    reader = EventReader()
    body = text.encode()
    events = [event for at in range(0, len(body), size) for event in reader.feed(body[at : at + size])]
    assert events == expected


@pytest.mark.parametrize("line_end", ["\n", "\r", "\r\n"])
@pytest.mark.parametrize("size", [1, 2, 3, 1000])
def test_are_the_same_whatever_ends_their_lines(line_end: str, size: int) -> None:
    lines = ["\ufeffdata: one", "", ": comment", "data", "data:  two 🚲", "", ""]
    body = line_end.join(lines).encode()
    reader = EventReader()
    events = [event for at in range(0, len(body), size) for event in reader.feed(body[at : at + size])]
    assert events == ["one", "\n two 🚲"]


def test_are_bounded() -> None:
    for chunk in (b"data: " + b"x" * 16_000_000 + b"\n", b"x" * 16_000_000):
        reader = EventReader()
        for _ in range(4):
            reader.feed(chunk)
        with pytest.raises(MedleyError, match="too long"):
            reader.feed(chunk)
