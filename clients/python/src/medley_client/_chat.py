"""Requests and answers of chat, in the chat-completions style."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypedDict, TypeGuard

from ._errors import MedleyError
from ._requests import JSON_HEADERS, Repeats, Request, json_of, segment
from .types import Cost

#: A turn of a conversation, such as the `message` of an answer.
Message = Mapping[str, object]

#: Seconds between the looks at the record of a call, which is written a moment after its end.
RECORD_PAUSES_S: Final = (0.06, 0.12, 0.24, 0.48, 0.96, 1.92)


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
    """A whole answer. `body` has all of it; the other fields are the usual ones, of its first choice."""

    text: str
    #: The turn of the assistant: put it behind the messages of the call to go on with the conversation.
    message: ChatMessage
    tool_calls: list[ChatToolCall]
    finish_reason: str | None
    usage: ChatUsage | None
    #: None if it is not known yet, or a proxy took it away.
    cost: ChatCost | None
    #: Names the call for `chat.get` and `feedback.give`.
    request_id: str
    body: ChatBody


def chat_request(
    model: str, messages: Iterable[Message], parameters: Mapping[str, object], *, is_whole: bool
) -> Request:
    """Builds a call. It costs money each time, so it is not sent again after a lost answer."""
    return Request(
        "POST",
        "/v1/chat/completions",
        headers=JSON_HEADERS,
        content=json_of({**parameters, "model": model, "messages": list(messages)}),
        repeats=Repeats.AFTER_ERROR,
        # A model may think for minutes before it answers.
        is_transfer=is_whole,
    )


def chat_answer(body: object, headers: Mapping[str, str], cost: ChatCost | None) -> ChatAnswer:
    """Returns an answer with its usual parts. Raises MedleyError if it is none."""
    if not _is_answer(body):
        raise MedleyError("The answer is no chat completion. Is base_url the address of a Medley service?")
    choice = next(iter(body["choices"]), ChatChoice(message=ChatMessage(role="assistant")))
    message = choice["message"]
    content = message.get("content")
    return ChatAnswer(
        text=content if isinstance(content, str) else "",
        message=message,
        tool_calls=message.get("tool_calls") or [],
        finish_reason=choice.get("finish_reason"),
        usage=body.get("usage"),
        cost=cost,
        request_id=headers.get("x-request-id", ""),
        body=body,
    )


def _is_answer(body: object) -> TypeGuard[ChatBody]:
    if not isinstance(body, dict) or not isinstance(body.get("choices"), list):
        return False
    return all(isinstance(each, dict) and isinstance(each.get("message"), dict) for each in body["choices"])


def cost_in(headers: Mapping[str, str]) -> ChatCost | None:
    """Returns the cost of a whole answer."""
    amount, currency = headers.get("x-cost-amount"), headers.get("x-cost-currency")
    return ChatCost(exact=amount, currency=currency) if amount and currency else None


def exact_cost(cost: Cost) -> ChatCost:
    return ChatCost(exact=cost["exact"], currency=cost["currency"])


def record_request(request_id: str, *, repeats: Repeats = Repeats.ALWAYS) -> Request:
    return Request("GET", f"/v1/chat/{segment(request_id)}", repeats=repeats)


def streamed(parameters: Mapping[str, object]) -> dict[str, object]:
    """Returns the parameters of a stream that ends with its usage, unless the caller sets that otherwise."""
    return {"stream_options": {"include_usage": True}, **parameters, "stream": True}
