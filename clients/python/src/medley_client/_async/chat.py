"""Chat, in the chat-completions style."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
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
from .http import AsyncAnswer, AsyncHttp
from .platform import sleep


class AsyncChat:
    """Calls of chat models. Parameters are those of the style, such as `max_tokens`, `tools`, `temperature`."""

    def __init__(self, http: AsyncHttp) -> None:
        self._http = http

    async def create(self, model: str, messages: Iterable[Message], **parameters: object) -> ChatAnswer:
        """Returns the whole answer. Raises ApiError; ConnectionFailedError, which may have cost money."""

        async def read(answer: AsyncAnswer) -> ChatAnswer:
            headers = answer.headers
            return chat_answer(parse_object(await answer.read(), ChatBody), headers, cost_in(headers))

        call = chat_request(model, messages, {**parameters, "stream": False}, is_whole=True)
        return await self._http.send(call, read)

    async def get(self, request_id: str) -> ChatRecord:
        """Returns what a call came to. It is there a moment after the end of the call; until then, NotFoundError."""
        return await self._http.fetch(record_request(request_id), ChatRecord)

    def stream(self, model: str, messages: Iterable[Message], **parameters: object) -> AsyncChatStream:
        """Returns an answer that comes in parts. Nothing is sent before it is read."""
        return AsyncChatStream(self._http, chat_request(model, messages, streamed(parameters), is_whole=False))


class AsyncChatStream:
    """An answer in parts, which a loop reads once. Leaving the `with` leaves the call: what has come is charged."""

    def __init__(self, http: AsyncHttp, request: Request) -> None:
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

    def __aiter__(self) -> AsyncGenerator[ChatBody, None]:
        return self._parts

    async def texts(self) -> AsyncGenerator[str, None]:
        """Yields the text of the first choice alone, as it comes."""
        async for part in self._parts:
            for text in texts_of(part):
                yield text

    async def final(self) -> ChatAnswer:
        """Reads what is left, and returns the whole answer with its cost. Raises what ended the stream before that."""
        async for _ in self._parts:
            pass
        if not self._is_complete:
            raise self._failure or MedleyError("The stream was left before its end.")
        cost = await self.cost()
        return chat_answer(self._state.body(), self._headers, exact_cost(cost) if cost else None)

    async def cost(self) -> Cost | None:
        """Returns what the call cost, also if it failed or was left; None if that is not known within seconds."""
        if self.request_id is None:
            return None
        for pause_s in RECORD_PAUSES_S:
            await sleep(pause_s)
            try:
                request = record_request(self.request_id, repeats=Repeats.NEVER)
                return (await self._http.fetch(request, ChatRecord))["cost"]
            except NotFoundError:
                continue
            except MedleyError:
                return None
        return None

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
        try:
            answer = await self._http.open(self._request)
            self._headers = answer.headers
            events = EventReader()
            try:
                async for chunk in answer.chunks(is_endless=True):
                    for data in events.feed(chunk):
                        if data == "[DONE]":
                            self._is_complete = True
                            return
                        yield self._state.take(data, answer.headers)
            finally:
                await answer.aclose()
            raise ConnectionFailedError("The stream was cut before its end.")
        except Exception as error:
            self._failure = error
            raise
