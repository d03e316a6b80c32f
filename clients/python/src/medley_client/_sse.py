"""Server-sent events, from the bytes of an answer."""

from __future__ import annotations

import re
from typing import Final

from ._errors import MedleyError

_EVENT_BYTES_MAX: Final = 64 * 1024 * 1024
_LINE_END: Final = re.compile(rb"\r\n|\r|\n")
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"


class EventReader:
    """Takes bytes as they come, cut anywhere, and returns the data of each event that is complete."""

    def __init__(self) -> None:
        self._line = bytearray()
        self._data: list[bytes] = []
        self._size_bytes = 0
        self._is_after_return = False
        self._is_first = True

    def feed(self, chunk: bytes) -> list[str]:
        if not chunk:
            return []
        # The line feed belongs to the carriage return that ended the bytes before.
        rest = chunk[1:] if self._is_after_return and chunk.startswith(b"\n") else chunk
        self._is_after_return = chunk.endswith(b"\r")
        first, *others = _LINE_END.split(rest)
        self._line += first
        events: list[str] = []
        for following in others:
            if (event := self._take(bytes(self._line))) is not None:
                events.append(event)
            self._line = bytearray(following)
        if self._size_bytes + len(self._line) > _EVENT_BYTES_MAX:
            raise MedleyError("An event of the stream is too long.")
        return events

    def _take(self, line: bytes) -> str | None:
        if self._is_first:
            self._is_first = False
            line = line.removeprefix(_BYTE_ORDER_MARK)
        if line == b"":
            data, self._data, self._size_bytes = self._data, [], 0
            return b"\n".join(data).decode("utf-8", "replace") if data else None
        name, _, value = line.partition(b":")
        if name == b"data":
            self._data.append(value.removeprefix(b" "))
            self._size_bytes += len(line)
        return None
