"""The form of an upload."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from functools import partial
from typing import Protocol, runtime_checkable

from ._errors import MedleyError

CHUNK_BYTES = 256 * 1024


class Form:
    """A form with one file, which is written while the file is read, of whatever length."""

    def __init__(self, fields: dict[str, str], filename: str) -> None:
        self._boundary = f"medley-client-{secrets.token_hex(16)}"
        self._fields = fields
        self._filename = filename

    @property
    def headers(self) -> dict[str, str]:
        return {"content-type": f"multipart/form-data; boundary={self._boundary}"}

    def head(self) -> bytes:
        """Returns what comes before the bytes of the file."""
        parts = [
            f'--{self._boundary}\r\ncontent-disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
            for name, value in self._fields.items()
        ]
        file = (
            f'--{self._boundary}\r\ncontent-disposition: form-data; name="file"; filename="{_quoted(self._filename)}"'
            "\r\ncontent-type: application/octet-stream\r\n\r\n"
        )
        return "".join([*parts, file]).encode("utf-8", "replace")

    def tail(self) -> bytes:
        return f"\r\n--{self._boundary}--\r\n".encode()


def form_of(filename: str, purpose: str | None, expires_after_s: int | None) -> Form:
    fields: dict[str, str] = {}
    if purpose is not None:
        fields["purpose"] = purpose
    if expires_after_s is not None:
        fields["expires_after[anchor]"] = "created_at"
        fields["expires_after[seconds]"] = str(expires_after_s)
    return Form(fields, filename)


def _quoted(filename: str) -> str:
    """Escapes a name as browsers do."""
    return filename.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")


def name_of_file(file: object) -> str:
    name = getattr(file, "name", None)
    return os.path.basename(name) if isinstance(name, str) and os.path.basename(name) else "file"


@runtime_checkable
class ReadableFile(Protocol):
    """A file that is open for reading bytes."""

    def read(self, size: int, /) -> bytes: ...


@runtime_checkable
class SeekableFile(Protocol):
    def seekable(self) -> bool: ...

    def tell(self) -> int: ...

    def seek(self, position: int, /) -> int: ...


def rewind_of(file: ReadableFile) -> Callable[[], object] | None:
    """Returns what moves a file back to where it is now; None if it can be read once."""
    try:
        if not isinstance(file, SeekableFile) or not file.seekable():
            return None
        return partial(file.seek, file.tell())
    except OSError:
        return None


def checked_chunk(chunk: object) -> bytes:
    if isinstance(chunk, bytes | bytearray | memoryview):
        return bytes(chunk)
    raise MedleyError("An upload needs bytes: open the file with mode 'rb'.")
