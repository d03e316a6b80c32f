"""Requests and answers of chat, in the chat-completions style."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypedDict

from ._errors import MedleyError, error_of_event
from ._requests import JSON_HEADERS, Repeats, Request, json_of
from .types import Cost

Message = Mapping[str, object]


class ChatFunction(TypedDict, total=False):
    name: str
    #: JSON, in a stream in parts.
    arguments: str


class ChatToolCall(TypedDict, total=False):
    #: In a stream: the call that a part belongs to.
    index: int
    id: str
    type: str
    function: ChatFunction


class ChatMessage(TypedDict, total=False):
    """A message, or what a part of a stream adds to it."""

    role: str
    content: str | None
    refusal: str | None
    tool_calls: list[ChatToolCall]


class ChatUsage(TypedDict, total=False):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: dict[str, int]
    completion_tokens_details: dict[str, int]


class ChatChoice(TypedDict, total=False):
    index: int
    message: ChatMessage
    delta: ChatMessage
    finish_reason: str | None


class ChatBody(TypedDict, total=False):
    """An answer, or a part of it."""

    id: str
    object: Literal["chat.completion", "chat.completion.chunk"]
    created: int
    model: str
    choices: list[ChatChoice]
    usage: ChatUsage | None


class ChatRecord(TypedDict):
    """A call that has ended. It has more fields, which GET /v1/chat/{request_id} describes."""

    object: Literal["chat.call"]
    request_id: str
    model: str
    #: That of the answer; 499 if the caller left before its end.
    status: int
    cost: Cost
    created_at: str


class ChatCost(TypedDict):
    #: To the millionth.
    exact: str
    currency: str


@dataclass(frozen=True)
class ChatAnswer:
    """A whole answer. `body` has all of it; the other fields are its usual parts."""

    text: str
    tool_calls: list[ChatToolCall]
    finish_reason: str | None
    usage: ChatUsage | None
    #: None if the service names none.
    cost: ChatCost | None
    request_id: str | None
    body: ChatBody


def chat_request(model: str, messages: Iterable[Message], parameters: Mapping[str, object]) -> Request:
    """Builds a call. It costs money each time, so it is not sent again after a lost answer."""
    call = {**parameters, "model": model, "messages": list(messages)}
    repeats = Repeats.AFTER_ERROR
    return Request("POST", "/v1/chat/completions", headers=JSON_HEADERS, content=json_of(call), repeats=repeats)


def chat_answer(body: ChatBody, headers: Mapping[str, str]) -> ChatAnswer:
    choice = next(iter(body.get("choices") or []), ChatChoice())
    message = choice.get("message") or ChatMessage()
    amount, currency = headers.get("x-cost-amount"), headers.get("x-cost-currency")
    return ChatAnswer(
        text=message.get("content") or "",
        tool_calls=message.get("tool_calls") or [],
        finish_reason=choice.get("finish_reason"),
        usage=body.get("usage"),
        cost=ChatCost(exact=amount, currency=currency) if amount and currency else None,
        request_id=headers.get("x-request-id"),
        body=body,
    )


def streamed(parameters: Mapping[str, object]) -> dict[str, object]:
    """Returns the parameters of a stream that ends with its usage, unless the caller sets that otherwise."""
    return {"stream_options": {"include_usage": True}, **parameters, "stream": True}


@dataclass
class StreamState:
    """What a stream has brought so far, of its first choice."""

    texts: list[str] = field(default_factory=list)
    finish_reason: str | None = None
    usage: ChatUsage | None = None

    def take(self, data: str, headers: Mapping[str, str]) -> ChatBody:
        """Returns an event as a part of the answer. Raises ApiError if it is the error that ends the stream."""
        try:
            part: ChatBody = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise MedleyError("The stream has an event that is not JSON.") from error
        if not isinstance(part, dict):
            raise MedleyError("The stream has an event that is not an object.")
        fields: Mapping[str, object] = part
        if "error" in fields and "choices" not in fields:
            raise error_of_event(fields["error"], headers)
        self.usage = part.get("usage") or self.usage
        for choice in part.get("choices") or []:
            if choice.get("index", 0) == 0:
                self.texts.append(text_of(choice))
                self.finish_reason = choice.get("finish_reason") or self.finish_reason
        return part


def text_of(choice: ChatChoice) -> str:
    return (choice.get("delta") or ChatMessage()).get("content") or ""
