# Written from _async by test/python-client/written.unit.test.ts: change the file there, and run it with --update.
"""Chat, in the chat-completions style."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from types import TracebackType

from .._chat import (
    RECORD_PAUSES_S,
    ChatAnswer,
    ChatBody,
    ChatRecord,
    ChatUsage,
    Message,
    chat_answer,
    chat_request,
    cost_in,
    exact_cost,
    record_request,
    streamed,
)
from .._chat_parts import ChatParts, texts_of
from .._errors import ConnectionFailedError, MedleyError, NotFoundError
from .._requests import Repeats, Request, parse_object
from .._sse import EventReader
from ..types import Cost
from .http import Answer, Http
from .platform import sleep


class Chat:
    """Calls of chat models. Parameters are those of the style, such as `max_tokens`, `tools`, `temperature`."""

    def __init__(self, http: Http) -> None:
        self._http = http

    def create(self, model: str, messages: Iterable[Message], **parameters: object) -> ChatAnswer:
        """Returns the whole answer. Raises ApiError; ConnectionFailedError, which may have cost money."""

        def read(answer: Answer) -> ChatAnswer:
            headers = answer.headers
            return chat_answer(parse_object(answer.read(), ChatBody), headers, cost_in(headers))

        call = chat_request(model, messages, {**parameters, "stream": False}, is_whole=True)
        return self._http.send(call, read)

    def get(self, request_id: str) -> ChatRecord:
        """Returns what a call came to. It is there a moment after the end of the call; until then, NotFoundError."""
        return self._http.fetch(record_request(request_id), ChatRecord)

    def stream(self, model: str, messages: Iterable[Message], **parameters: object) -> ChatStream:
        """Returns an answer that comes in parts. Nothing is sent before it is read."""
        return ChatStream(self._http, chat_request(model, messages, streamed(parameters), is_whole=False))


class ChatStream:
    """An answer in parts, which a loop reads once. Leaving the `with` leaves the call: what has come is charged."""

    def __init__(self, http: Http, request: Request) -> None:
        self._http = http
        self._request = request
        self._state = ChatParts()
        self._headers: dict[str, str] = {}
        self._is_complete = False
        self._failure: Exception | None = None
        self._parts = self._read()

    @property
    def request_id(self) -> str | None:
        """The name of the call for `chat.get` and `feedback.give`, once its answer has begun."""
        return self._headers.get("x-request-id")

    @property
    def text(self) -> str:
        """The text that has come so far."""
        return self._state.text

    @property
    def finish_reason(self) -> str | None:
        choices = self._state.body().get("choices")
        return choices[0].get("finish_reason") if choices else None

    @property
    def usage(self) -> ChatUsage | None:
        """The tokens, once the stream has ended."""
        return self._state.body().get("usage")

    def __iter__(self) -> Generator[ChatBody, None, None]:
        return self._parts

    def texts(self) -> Generator[str, None, None]:
        """Yields the text of the first choice alone, as it comes."""
        for part in self._parts:
            for text in texts_of(part):
                yield text

    def final(self) -> ChatAnswer:
        """Reads what is left, and returns the whole answer with its cost. Raises what ended the stream before that."""
        for _ in self._parts:
            pass
        if not self._is_complete:
            raise self._failure or MedleyError("The stream was left before its end.")
        cost = self.cost()
        return chat_answer(self._state.body(), self._headers, exact_cost(cost) if cost else None)

    def cost(self) -> Cost | None:
        """Returns what the call cost, also if it failed or was left; None if that is not known within seconds."""
        if self.request_id is None:
            return None
        for pause_s in RECORD_PAUSES_S:
            sleep(pause_s)
            try:
                request = record_request(self.request_id, repeats=Repeats.NEVER)
                return (self._http.fetch(request, ChatRecord))["cost"]
            except NotFoundError:
                continue
            except MedleyError:
                return None
        return None

    def __enter__(self) -> ChatStream:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends the call, if it has not ended."""
        self._parts.close()

    def _read(self) -> Generator[ChatBody, None, None]:
        try:
            answer = self._http.open(self._request)
            self._headers = answer.headers
            events = EventReader()
            try:
                for chunk in answer.chunks(is_endless=True):
                    for data in events.feed(chunk):
                        if data == "[DONE]":
                            self._is_complete = True
                            return
                        yield self._state.take(data, answer.headers)
            finally:
                answer.close()
            raise ConnectionFailedError("The stream was cut before its end.")
        except Exception as error:
            self._failure = error
            raise
