"""Server-sent events, from the bytes of an answer."""

from __future__ import annotations

from typing import Final

from ._errors import MedleyError

_EVENT_BYTES_MAX: Final = 64 * 1024 * 1024


class EventReader:
    """Takes bytes as they come, cut anywhere, and returns the data of each event that is complete."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._data: list[bytes] = []
        self._size_bytes = 0

    def feed(self, chunk: bytes) -> list[str]:
        events: list[str] = []
        if b"\n" in chunk:
            *lines, rest = (bytes(self._rest) + chunk).split(b"\n")
            self._rest = bytearray(rest)
            events = [event for line in lines if (event := self._take(line.rstrip(b"\r"))) is not None]
        else:
            self._rest += chunk
        if self._size_bytes + len(self._rest) > _EVENT_BYTES_MAX:
            raise MedleyError("An event of the stream is too long.")
        return events

    def _take(self, line: bytes) -> str | None:
        if line == b"":
            data, self._data, self._size_bytes = self._data, [], 0
            return b"\n".join(data).decode("utf-8", "replace") if data else None
        if line.startswith(b"data:"):
            value = line[5:]
            self._data.append(value[1:] if value.startswith(b" ") else value)
            self._size_bytes += len(line)
        return None
