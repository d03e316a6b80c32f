# Written from _async by test/python-client/written.unit.test.ts: change the file there, and run it with --update.
"""Outputs, as bytes, as a stream, and as a file that is complete or not there."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Callable, Generator
from functools import partial
from typing import TypeVar

from .._errors import MedleyError
from .._outputs import Downloadable, check_size, link_request
from .http import Answer, Http
from .platform import run_blocking

T = TypeVar("T")


def download_bytes(http: Http, file: Downloadable) -> bytes:
    def read(answer: Answer) -> bytes:
        body = answer.read()
        check_size(file, len(body))
        return body

    return http.send(link_request(file), read)


def download_stream(http: Http, file: Downloadable) -> Generator[bytes, None, None]:
    """Yields the bytes while they come. The timeout is that of silence."""
    answer = http.open(link_request(file, is_transfer=False))
    size_bytes = 0
    try:
        for chunk in answer.chunks(is_endless=True):
            size_bytes += len(chunk)
            yield chunk
    finally:
        answer.close()
    check_size(file, size_bytes)


def download_file(http: Http, file: Downloadable, path: str | os.PathLike[str]) -> None:
    """Writes a file that is there only when it is complete. Begins anew if the connection is cut.

    Raises MedleyError, which is never repeated, if the disk does not take it.
    """
    target = os.fspath(path)

    def read(answer: Answer) -> None:
        _write(target, file, answer)

    http.send(link_request(file), read)


def _write(target: str, file: Downloadable, answer: Answer) -> None:
    unfinished = f"{target}.{secrets.token_hex(8)}.part"
    handle = _on_disk(target, lambda: open(unfinished, "xb"))
    try:
        size_bytes = 0
        for chunk in answer.chunks():
            _on_disk(target, partial(handle.write, chunk))
            size_bytes += len(chunk)
        check_size(file, size_bytes)
        _on_disk(target, handle.flush)
        _on_disk(target, lambda: os.fsync(handle.fileno()))
        _on_disk(target, handle.close)
        _on_disk(target, lambda: os.replace(unfinished, target))
    except BaseException:
        with contextlib.suppress(OSError):
            handle.close()
        with contextlib.suppress(OSError):
            os.unlink(unfinished)
        raise


def _on_disk(path: str, work: Callable[[], T]) -> T:
    try:
        return run_blocking(work)
    except OSError as error:
        raise MedleyError(f"{path} cannot be written: {error}") from error
