# Written from _async by test/python-client/written.unit.test.ts: change the file there, and run it with --update.
"""Files of the account."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import Literal

from .._errors import MedleyError, NotFoundError
from .._forms import CHUNK_BYTES, Form, ReadableFile, checked_chunk, form_of, name_of_file, rewind_of
from .._requests import Page, Repeats, Request, parse_object, segment
from ..types import UploadedFile
from .cursor import Cursor
from .http import Answer, Http
from .platform import run_blocking

#: A path, bytes, a file that is open for reading bytes, or chunks of bytes.
FileSource = str | os.PathLike[str] | bytes | bytearray | memoryview | ReadableFile | Iterable[bytes]


class Files:
    def __init__(self, http: Http) -> None:
        self._http = http

    def upload(
        self,
        source: FileSource,
        *,
        filename: str | None = None,
        purpose: str | None = None,
        expires_after_s: int | None = None,
    ) -> UploadedFile:
        """Uploads a file. Its id may stand in fields of an input that take files.

        `source` is a path, bytes, a file that is open for reading bytes, or chunks. `purpose` is a label of your own.
        `expires_after_s`: seconds until the file is removed, if less than the usual time. The file is not sent again
        after a lost answer. Raises OSError, before anything is sent, if the path cannot be read.
        """
        if isinstance(source, str | os.PathLike):
            path = os.fspath(source)
            file = run_blocking(lambda: open(path, "rb"))
            try:
                return self._upload(file, filename, purpose, expires_after_s)
            finally:
                run_blocking(file.close)
        return self._upload(source, filename, purpose, expires_after_s)

    def _upload(
        self,
        source: bytes | bytearray | memoryview | ReadableFile | Iterable[bytes],
        filename: str | None,
        purpose: str | None,
        expires_after_s: int | None,
    ) -> UploadedFile:
        form = form_of(filename if filename is not None else name_of_file(source), purpose, expires_after_s)
        make_chunks, is_repeatable = _chunks_of(source)

        def make_body() -> Iterable[bytes]:
            return _form_chunks(form, make_chunks())

        repeats = Repeats.AFTER_REFUSAL if is_repeatable else Repeats.NEVER
        request = Request("POST", "/v1/files", headers=form.headers, repeats=repeats, is_transfer=True)
        return parse_object(self._http.send(request, Answer.read, make_body), UploadedFile)

    def get(self, file_id: str) -> UploadedFile:
        return self._http.fetch(Request("GET", f"/v1/files/{segment(file_id)}"), UploadedFile)

    def list(
        self,
        *,
        limit: int | None = None,
        order: Literal["asc", "desc"] | None = None,
        after: str | None = None,
        purpose: str | None = None,
    ) -> Cursor[UploadedFile]:
        """Lists files, newest first unless `order` is `asc`."""

        def load(last: str | None) -> Page[UploadedFile]:
            query = {"limit": limit, "order": order, "after": last, "purpose": purpose}
            return self._http.fetch_page(Request("GET", "/v1/files", query), UploadedFile)

        return Cursor(load, after)

    def delete(self, file_id: str) -> None:
        try:
            self._http.send(Request("DELETE", f"/v1/files/{segment(file_id)}"), Answer.read)
        except NotFoundError as error:
            if not error.follows_lost_answer:
                raise


def _chunks_of(
    source: bytes | bytearray | memoryview | ReadableFile | Iterable[bytes],
) -> tuple[Callable[[], Iterable[bytes]], bool]:
    """Returns what makes the chunks of an attempt, and whether it can make them again."""
    if isinstance(source, bytes | bytearray | memoryview):
        whole = bytes(source)

        def chunks_of_bytes() -> Iterable[bytes]:
            return _one(whole)

        return chunks_of_bytes, True
    if isinstance(source, ReadableFile):
        file = source
        rewind = rewind_of(file)

        def chunks_of_file() -> Iterable[bytes]:
            if rewind is not None:
                run_blocking(rewind)
            return _read(file)

        return chunks_of_file, rewind is not None
    if not isinstance(source, Iterable):
        raise MedleyError("An upload needs a path, bytes, a file that is open for reading bytes, or chunks of bytes.")
    chunks = source

    def chunks_once() -> Iterable[bytes]:
        return chunks

    return chunks_once, False


def _one(whole: bytes) -> Iterator[bytes]:
    yield whole


def _read(file: ReadableFile) -> Iterator[bytes]:
    while chunk := checked_chunk(run_blocking(lambda: file.read(CHUNK_BYTES))):
        yield chunk


def _form_chunks(form: Form, chunks: Iterable[bytes]) -> Iterator[bytes]:
    yield form.head()
    for chunk in chunks:
        yield checked_chunk(chunk)
    yield form.tail()
