"""Chat, in the chat-completions style."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
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
from .http import AsyncAnswer, AsyncHttp


class AsyncChat:
    """Calls of chat models. Parameters are those of the style, such as `max_tokens`, `tools`, `temperature`."""

    def __init__(self, http: AsyncHttp) -> None:
        self._http = http

    async def create(self, model: str, messages: Iterable[Message], **parameters: object) -> ChatAnswer:
        """Returns the whole answer. Raises ApiError; ConnectionFailedError, which may have cost money."""

        async def read(answer: AsyncAnswer) -> ChatAnswer:
            return chat_answer(parse_object(await answer.read(), ChatBody), answer.headers)

        return await self._http.send(chat_request(model, messages, {**parameters, "stream": False}), read)

    async def get(self, request_id: str) -> ChatRecord:
        """Returns what a call came to. It is there a moment after the end of the call; until then, NotFoundError."""
        return await self._http.fetch(Request("GET", f"/v1/chat/{segment(request_id)}"), ChatRecord)

    def stream(self, model: str, messages: Iterable[Message], **parameters: object) -> AsyncChatStream:
        """Returns an answer that comes in parts. Nothing is sent before it is read."""
        return AsyncChatStream(self._http, chat_request(model, messages, streamed(parameters)))


class AsyncChatStream:
    """An answer in parts, which a loop reads once. Leaving the `with` leaves the call, which costs money still."""

    def __init__(self, http: AsyncHttp, request: Request) -> None:
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

    def __aiter__(self) -> AsyncGenerator[ChatBody, None]:
        return self._parts

    async def texts(self) -> AsyncGenerator[str, None]:
        """Yields the text of the first choice alone, as it comes."""
        async for part in self._parts:
            for choice in part.get("choices") or []:
                if choice.get("index", 0) == 0 and (text := text_of(choice)):
                    yield text

    async def __aenter__(self) -> AsyncChatStream:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Ends the call, if it has not ended."""
        await self._parts.aclose()

    async def _read(self) -> AsyncGenerator[ChatBody, None]:
        answer = await self._http.open(self._request)
        self.request_id = answer.headers.get("x-request-id")
        events = EventReader()
        try:
            async for chunk in answer.chunks(is_endless=True):
                for data in events.feed(chunk):
                    if data == "[DONE]":
                        return
                    yield self._state.take(data, answer.headers)
        finally:
            await answer.aclose()
        raise ConnectionFailedError("The stream was cut before its end.")
