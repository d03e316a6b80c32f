"""Outputs, as bytes, as a stream, and as a file that is complete or not there."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import AsyncGenerator, Callable
from functools import partial
from typing import TypeVar

from .._errors import MedleyError
from .._outputs import Downloadable, check_size, link_request
from .http import AsyncAnswer, AsyncHttp
from .platform import run_blocking

T = TypeVar("T")


async def download_bytes(http: AsyncHttp, file: Downloadable) -> bytes:
    async def read(answer: AsyncAnswer) -> bytes:
        body = await answer.read()
        check_size(file, len(body))
        return body

    return await http.send(link_request(file), read)


async def download_stream(http: AsyncHttp, file: Downloadable) -> AsyncGenerator[bytes, None]:
    """Yields the bytes while they come. The timeout is that of silence."""
    answer = await http.open(link_request(file, is_transfer=False))
    size_bytes = 0
    try:
        async for chunk in answer.chunks(is_endless=True):
            size_bytes += len(chunk)
            yield chunk
    finally:
        await answer.aclose()
    check_size(file, size_bytes)


async def download_file(http: AsyncHttp, file: Downloadable, path: str | os.PathLike[str]) -> None:
    """Writes a file that is there only when it is complete. Begins anew if the connection is cut.

    Raises MedleyError, which is never repeated, if the disk does not take it.
    """
    target = os.fspath(path)

    async def read(answer: AsyncAnswer) -> None:
        await _write(target, file, answer)

    await http.send(link_request(file), read)


async def _write(target: str, file: Downloadable, answer: AsyncAnswer) -> None:
    unfinished = f"{target}.{secrets.token_hex(8)}.part"
    handle = await _on_disk(target, lambda: open(unfinished, "xb"))
    try:
        size_bytes = 0
        async for chunk in answer.chunks():
            await _on_disk(target, partial(handle.write, chunk))
            size_bytes += len(chunk)
        check_size(file, size_bytes)
        await _on_disk(target, handle.flush)
        await _on_disk(target, lambda: os.fsync(handle.fileno()))
        await _on_disk(target, handle.close)
        await _on_disk(target, lambda: os.replace(unfinished, target))
    except BaseException:
        with contextlib.suppress(OSError):
            handle.close()
        with contextlib.suppress(OSError):
            os.unlink(unfinished)
        raise


async def _on_disk(path: str, work: Callable[[], T]) -> T:
    try:
        return await run_blocking(work)
    except OSError as error:
        raise MedleyError(f"{path} cannot be written: {error}") from error
