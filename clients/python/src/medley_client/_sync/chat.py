# Written from _async by test/python-client/written.unit.test.ts: change the file there, and run it with --update.
"""Chat, in the chat-completions style."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from types import TracebackType

from .._chat import (
    ChatAnswer,
    ChatBody,
    ChatRecord,
    ChatUsage,
    Message,
    StreamState,
    chat_answer,
    chat_request,
    streamed,
    text_of,
)
from .._errors import ConnectionFailedError
from .._requests import Request, parse_object, segment
from .._sse import EventReader
from .http import Answer, Http


class Chat:
    """Calls of chat models. Parameters are those of the style, such as `max_tokens`, `tools`, `temperature`."""

    def __init__(self, http: Http) -> None:
        self._http = http

    def create(self, model: str, messages: Iterable[Message], **parameters: object) -> ChatAnswer:
        """Returns the whole answer. Raises ApiError; ConnectionFailedError, which may have cost money."""

        def read(answer: Answer) -> ChatAnswer:
            return chat_answer(parse_object(answer.read(), ChatBody), answer.headers)

        return self._http.send(chat_request(model, messages, {**parameters, "stream": False}), read)

    def get(self, request_id: str) -> ChatRecord:
        """Returns what a call came to. It is there a moment after the end of the call; until then, NotFoundError."""
        return self._http.fetch(Request("GET", f"/v1/chat/{segment(request_id)}"), ChatRecord)

    def stream(self, model: str, messages: Iterable[Message], **parameters: object) -> ChatStream:
        """Returns an answer that comes in parts. Nothing is sent before it is read."""
        return ChatStream(self._http, chat_request(model, messages, streamed(parameters)))


class ChatStream:
    """An answer in parts, which a loop reads once. Leaving the `with` leaves the call, which costs money still."""

    def __init__(self, http: Http, request: Request) -> None:
        self._http = http
        self._request = request
        self._state = StreamState()
        self._parts = self._read()
        #: Names the call for `chat.get`, which has its cost.
        self.request_id: str | None = None

    @property
    def text(self) -> str:
        """The text that has come so far."""
        return "".join(self._state.texts)

    @property
    def finish_reason(self) -> str | None:
        return self._state.finish_reason

    @property
    def usage(self) -> ChatUsage | None:
        """The tokens, once the stream has ended."""
        return self._state.usage

    def __iter__(self) -> Generator[ChatBody, None, None]:
        return self._parts

    def texts(self) -> Generator[str, None, None]:
        """Yields the text of the first choice alone, as it comes."""
        for part in self._parts:
            for choice in part.get("choices") or []:
                if choice.get("index", 0) == 0 and (text := text_of(choice)):
                    yield text

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
        answer = self._http.open(self._request)
        self.request_id = answer.headers.get("x-request-id")
        events = EventReader()
        try:
            for chunk in answer.chunks(is_endless=True):
                for data in events.feed(chunk):
                    if data == "[DONE]":
                        return
                    yield self._state.take(data, answer.headers)
        finally:
            answer.close()
        raise ConnectionFailedError("The stream was cut before its end.")
