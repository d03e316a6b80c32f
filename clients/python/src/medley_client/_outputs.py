"""The link of an output, and its size."""

from __future__ import annotations

import re

from ._errors import ConnectionFailedError, MedleyError
from ._requests import Request
from .types import OutputItem

#: An output, or its link alone.
Downloadable = str | OutputItem


def link_request(file: Downloadable, *, is_transfer: bool = True) -> Request:
    """Links are signed: the API key is not sent to them, whoever serves them."""
    url = file if isinstance(file, str) else file["url"]
    if not re.match(r"https?://", url):
        raise MedleyError("A download needs an output, or its http(s) link.")
    return Request("GET", url, is_transfer=is_transfer)


def check_size(file: Downloadable, size_bytes: int) -> None:
    """Raises if a connection was cut where that looks like the end."""
    if not isinstance(file, str) and file.get("size_bytes", size_bytes) != size_bytes:
        raise ConnectionFailedError(f"{size_bytes} of {file['size_bytes']} bytes came.")
