"""Generations: create, wait, cancel, list."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from datetime import datetime
from typing import Literal

from .._errors import ApiError, MedleyError, TaskFailedError, WaitTimeoutError
from .._requests import JSON_HEADERS, Deadline, Page, Request, json_of, segment
from ..types import Links, OutputItem, Task
from .cursor import AsyncCursor
from .http import AsyncAnswer, AsyncHttp
from .platform import LEAVING, Listener, notify, shielded, sleep

_POLL_FIRST_S = 0.5
_POLL_MOST_S = 5.0
_POLL_GROWTH = 1.5

#: Balancers cut what is silent for a minute.
_CREATE_WAIT_S_MAX = 50

#: A task goes on while the service starts again, so polls are more patient than other requests.
_POLL_RETRIES_MIN = 8

#: `list` is a method below.
Outputs = list[OutputItem]


class AsyncTasks:
    """The tasks of the account."""

    def __init__(self, http: AsyncHttp) -> None:
        self._http = http

    async def create(
        self,
        model: str,
        input: Mapping[str, object],
        *,
        wait: int = 0,
        webhook_url: str | None = None,
        metadata: Mapping[str, str] | None = None,
        idempotency_key: str | None = None,
    ) -> Task:
        """Creates a task and returns it as it is then. Raises if it is not accepted; a task that fails is returned.

        `wait`: seconds that the service waits for the end of the task before it answers, at most 300.
        `webhook_url` receives the final task: `verify_webhook`. `metadata`: at most 16 pairs, echoed in the task.
        `idempotency_key`: the same key and request are the same task for 24 hours; without it, each call has a new one.
        """
        if not isinstance(wait, int) or wait < 0:
            raise MedleyError("wait must be a whole number of seconds from 0.")
        return await self._create(_creation(model, input, wait, webhook_url, metadata, idempotency_key))

    async def get(self, task_id: str) -> Task:
        return await self._http.fetch(Request("GET", f"/v1/tasks/{segment(task_id)}"), Task)

    def list(
        self,
        *,
        limit: int | None = None,
        after: str | None = None,
        status: Literal["queued", "running", "succeeded", "failed"] | None = None,
        model: str | None = None,
        created_after: str | datetime | None = None,
        created_before: str | datetime | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> AsyncCursor[Task]:
        """Lists tasks, newest first. `limit` is the length of a page, not of the list."""

        async def load(last: str | None) -> Page[Task]:
            query = {
                "limit": limit,
                "after": last,
                "status": status,
                "model": model,
                "created_after": created_after,
                "created_before": created_before,
                "metadata": metadata,
            }
            return await self._http.fetch_page(Request("GET", "/v1/tasks", query), Task)

        return AsyncCursor(load, after)

    async def cancel(self, task_id: str) -> Task:
        """Cancels a task, and returns it. Raises a 409 if it has ended, or if its provider bills it anyway."""
        try:
            return await self._http.fetch(Request("POST", f"/v1/tasks/{segment(task_id)}/cancel"), Task)
        except ApiError as error:
            # The answer to the first attempt may have been lost: what is canceled already is no conflict.
            if error.status != 409:
                raise
            task = await self.get(task_id)
            if task["error"] is None or task["error"]["type"] != "canceled":
                raise
            return task

    async def links(self, task_id: str) -> Outputs:
        """Returns the outputs with fresh links."""
        return (await self._http.fetch(Request("POST", f"/v1/tasks/{segment(task_id)}/links"), Links))["data"]

    async def delete_output(self, task_id: str) -> None:
        """Removes the files of a task. The task stays."""
        await self._http.send(Request("DELETE", f"/v1/tasks/{segment(task_id)}/output"), AsyncAnswer.read)

    async def wait(
        self,
        task_id: str,
        *,
        wait: float | None = None,
        on_progress: Listener[Task] | None = None,
        cancel_on_leave: bool = False,
    ) -> Task:
        """Returns the final task, whether it succeeded or failed. Raises WaitTimeoutError after `wait` seconds."""
        deadline = Deadline(wait)
        try:
            return await self._until_final(await self._poll(task_id), deadline, on_progress)
        except (Exception, *LEAVING) as error:
            await self._leave(task_id, error, cancel_on_leave)
            raise

    async def generate(
        self,
        model: str,
        input: Mapping[str, object],
        *,
        wait: float | None = None,
        on_progress: Listener[Task] | None = None,
        cancel_on_leave: bool = False,
        webhook_url: str | None = None,
        metadata: Mapping[str, str] | None = None,
        idempotency_key: str | None = None,
    ) -> Task:
        """Creates a task and returns it when it has succeeded; the same as `generate` of the client."""
        deadline = Deadline(wait)
        # Whoever looks at the progress, or may cancel, needs the id of the task at once.
        is_watched = on_progress is not None or cancel_on_leave
        wait_s = 0 if is_watched else int(min(_CREATE_WAIT_S_MAX, deadline.left_s))
        creation = _creation(model, input, wait_s, webhook_url, metadata, idempotency_key)
        try:
            task = await self._create(creation)
        except LEAVING:
            if cancel_on_leave:
                await shielded(lambda: self._cancel_lost(creation))
            raise
        try:
            task = await self._until_final(task, deadline, on_progress)
        except (Exception, *LEAVING) as error:
            await self._leave(task["id"], error, cancel_on_leave)
            raise
        if task["status"] == "succeeded":
            return task
        raise TaskFailedError(task)

    async def _create(self, creation: Request) -> Task:
        return await self._http.fetch(creation, Task)

    async def _poll(self, task_id: str) -> Task:
        request = Request("GET", f"/v1/tasks/{segment(task_id)}", retries_min=_POLL_RETRIES_MIN)
        return await self._http.fetch(request, Task)

    async def _until_final(self, task: Task, deadline: Deadline, on_progress: Listener[Task] | None) -> Task:
        pause_s = _POLL_FIRST_S
        while True:
            if on_progress is not None:
                await notify(on_progress, task)
            if task["status"] in ("succeeded", "failed"):
                return task
            if deadline.left_s <= 0:
                raise WaitTimeoutError(task, deadline.wait_s)
            await sleep(min(pause_s, deadline.left_s))
            task = await self._poll(task["id"])
            pause_s = min(_POLL_MOST_S, pause_s * _POLL_GROWTH)

    async def _leave(self, task_id: str, error: BaseException, cancel_on_leave: bool) -> None:
        """Errors have the id of the task: it goes on without its caller. Whoever leaves by itself may cancel it."""
        if isinstance(error, MedleyError):
            error.task_id = task_id
        elif cancel_on_leave:
            await shielded(lambda: self._cancel_quietly(task_id))

    async def _cancel_quietly(self, task_id: str) -> None:
        """Whatever comes of it, the caller has left. A provider that bills the task anyway lets it go on."""
        try:
            await self.cancel(task_id)
        except MedleyError:
            return

    async def _cancel_lost(self, creation: Request) -> None:
        """Asks for the task of a creation whose answer was lost, by the same key, and cancels it."""
        try:
            task = await self._create(creation)
        except MedleyError:
            return
        await self._cancel_quietly(task["id"])


def _creation(
    model: str,
    input: Mapping[str, object],
    wait: int,
    webhook_url: str | None,
    metadata: Mapping[str, str] | None,
    idempotency_key: str | None,
) -> Request:
    call: dict[str, object] = {"model": model, "input": input}
    if webhook_url is not None:
        call["webhook_url"] = webhook_url
    if metadata is not None:
        call["metadata"] = metadata
    key = f"client-{secrets.token_hex(16)}" if idempotency_key is None else idempotency_key
    if not re.fullmatch(r"[\x21-\x7e]([\x20-\x7e]{0,253}[\x21-\x7e])?", key):
        raise MedleyError("idempotency_key must have 1 to 255 characters of ASCII.")
    wait_s = min(wait, 300)
    return Request(
        "POST",
        "/v1/generate",
        query={"wait": wait_s or None},
        headers={**JSON_HEADERS, "idempotency-key": key},
        content=json_of(call),  # once: another body with the same key is refused
        wait_s=wait_s,
    )
