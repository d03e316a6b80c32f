# Written from _async by test/python-client/written.unit.test.ts: change the file there, and run it with --update.
"""The models that the key may use."""

from __future__ import annotations

from typing import Literal

from .._requests import Page, Request, segment
from ..types import Model
from .cursor import Cursor
from .http import Http


class Models:
    def __init__(self, http: Http) -> None:
        self._http = http

    def get(self, model_id: str) -> Model:
        """Returns a model with its `input_schema` and its prices."""
        return self._http.fetch(Request("GET", f"/v1/models/{segment(model_id)}"), Model)

    def list(
        self,
        *,
        limit: int | None = None,
        after_id: str | None = None,
        modality: Literal["chat", "embedding", "rerank", "moderation", "image", "video", "audio"] | None = None,
    ) -> Cursor[Model]:
        def load(last: str | None) -> Page[Model]:
            query = {"limit": limit, "after_id": last, "modality": modality}
            return self._http.fetch_page(Request("GET", "/v1/models", query), Model)

        return Cursor(load, after_id)
