# Written from _async by test/python-client/written.unit.test.ts: change the file there, and run it with --update.
"""Scores of chat calls and tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .._errors import NotFoundError
from .._requests import JSON_HEADERS, Page, Request, json_of, segment
from ..types import Feedback
from .cursor import Cursor
from .http import Answer, Http


class FeedbackCalls:
    def __init__(self, http: Http) -> None:
        self._http = http

    def give(
        self,
        reference_id: str,
        score: float | bool,
        *,
        name: str | None = None,
        user: str | None = None,
        comment: str | None = None,
        tags: Sequence[str] | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> Feedback:
        """Scores a chat call, by the `x-request-id` of its answer, or a task: from -1 to 1, or True and False.

        `name` is the metric, `rating` unless set, `user` the end user whose score it is. A second score of the same
        metric and user takes the place of the first.
        """
        body: dict[str, object] = {"reference_id": reference_id, "score": score}
        for key, value in (("name", name), ("user", user), ("comment", comment)):
            if value is not None:
                body[key] = value
        if tags is not None:
            body["tags"] = list(tags)
        if metadata is not None:
            body["metadata"] = dict(metadata)
        request = Request("POST", "/v1/feedback", headers=JSON_HEADERS, content=json_of(body))
        return self._http.fetch(request, Feedback)

    def list(
        self,
        *,
        limit: int | None = None,
        after: str | None = None,
        reference_id: str | None = None,
        name: str | None = None,
        user: str | None = None,
    ) -> Cursor[Feedback]:
        """Lists feedback, newest first."""

        def load(last: str | None) -> Page[Feedback]:
            query = {"limit": limit, "after": last, "reference_id": reference_id, "name": name, "user": user}
            return self._http.fetch_page(Request("GET", "/v1/feedback", query), Feedback)

        return Cursor(load, after)

    def delete(self, feedback_id: str) -> None:
        try:
            self._http.send(Request("DELETE", f"/v1/feedback/{segment(feedback_id)}"), Answer.read)
        except NotFoundError as error:
            if not error.follows_lost_answer:
                raise
