"""Files of the account."""

from __future__ import annotations

import os
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable
from typing import Literal

from .._errors import MedleyError, NotFoundError
from .._forms import CHUNK_BYTES, Form, ReadableFile, checked_chunk, form_of, name_of_file, rewind_of
from .._requests import Page, Repeats, Request, parse_object, segment
from ..types import UploadedFile
from .cursor import AsyncCursor
from .http import AsyncAnswer, AsyncHttp
from .platform import run_blocking

#: A path, bytes, a file that is open for reading bytes, or chunks of bytes.
AsyncFileSource = str | os.PathLike[str] | bytes | bytearray | memoryview | ReadableFile | AsyncIterable[bytes]


class AsyncFiles:
    def __init__(self, http: AsyncHttp) -> None:
        self._http = http

    async def upload(
        self,
        source: AsyncFileSource,
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
            file = await run_blocking(lambda: open(path, "rb"))
            try:
                return await self._upload(file, filename, purpose, expires_after_s)
            finally:
                await run_blocking(file.close)
        return await self._upload(source, filename, purpose, expires_after_s)

    async def _upload(
        self,
        source: bytes | bytearray | memoryview | ReadableFile | AsyncIterable[bytes],
        filename: str | None,
        purpose: str | None,
        expires_after_s: int | None,
    ) -> UploadedFile:
        form = form_of(filename if filename is not None else name_of_file(source), purpose, expires_after_s)
        make_chunks, is_repeatable = _chunks_of(source)

        async def make_body() -> AsyncIterable[bytes]:
            return _form_chunks(form, await make_chunks())

        repeats = Repeats.AFTER_REFUSAL if is_repeatable else Repeats.NEVER
        request = Request("POST", "/v1/files", headers=form.headers, repeats=repeats, is_transfer=True)
        return parse_object(await self._http.send(request, AsyncAnswer.read, make_body), UploadedFile)

    async def get(self, file_id: str) -> UploadedFile:
        return await self._http.fetch(Request("GET", f"/v1/files/{segment(file_id)}"), UploadedFile)

    def list(
        self,
        *,
        limit: int | None = None,
        order: Literal["asc", "desc"] | None = None,
        after: str | None = None,
        purpose: str | None = None,
    ) -> AsyncCursor[UploadedFile]:
        """Lists files, newest first unless `order` is `asc`."""

        async def load(last: str | None) -> Page[UploadedFile]:
            query = {"limit": limit, "order": order, "after": last, "purpose": purpose}
            return await self._http.fetch_page(Request("GET", "/v1/files", query), UploadedFile)

        return AsyncCursor(load, after)

    async def delete(self, file_id: str) -> None:
        try:
            await self._http.send(Request("DELETE", f"/v1/files/{segment(file_id)}"), AsyncAnswer.read)
        except NotFoundError as error:
            if not error.follows_lost_answer:
                raise


def _chunks_of(
    source: bytes | bytearray | memoryview | ReadableFile | AsyncIterable[bytes],
) -> tuple[Callable[[], Awaitable[AsyncIterable[bytes]]], bool]:
    """Returns what makes the chunks of an attempt, and whether it can make them again."""
    if isinstance(source, bytes | bytearray | memoryview):
        whole = bytes(source)

        async def chunks_of_bytes() -> AsyncIterable[bytes]:
            return _one(whole)

        return chunks_of_bytes, True
    if isinstance(source, ReadableFile):
        file = source
        rewind = rewind_of(file)

        async def chunks_of_file() -> AsyncIterable[bytes]:
            if rewind is not None:
                await run_blocking(rewind)
            return _read(file)

        return chunks_of_file, rewind is not None
    if not isinstance(source, AsyncIterable):
        raise MedleyError("An upload needs a path, bytes, a file that is open for reading bytes, or chunks of bytes.")
    chunks = source

    async def chunks_once() -> AsyncIterable[bytes]:
        return chunks

    return chunks_once, False


async def _one(whole: bytes) -> AsyncIterator[bytes]:
    yield whole


async def _read(file: ReadableFile) -> AsyncIterator[bytes]:
    while chunk := checked_chunk(await run_blocking(lambda: file.read(CHUNK_BYTES))):
        yield chunk


async def _form_chunks(form: Form, chunks: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    yield form.head()
    async for chunk in chunks:
        yield checked_chunk(chunk)
    yield form.tail()
