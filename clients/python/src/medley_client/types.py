"""Answers of the service. Written from openapi.json by test/python-client/written.unit.test.ts, with --update."""

from __future__ import annotations

from typing import Literal, TypedDict


class Task(TypedDict):
    """A generation task."""
    #: Task identifier, `task_` + 26 characters.
    id: str
    status: Literal["queued", "running", "succeeded", "failed"]
    model: str
    output: list[OutputItem]
    cost: Cost
    estimated_cost: Cost
    error: TaskError | None
    #: Creation time.
    created_at: str
    #: When the run started.
    started_at: str | None
    #: When the task became final.
    completed_at: str | None
    metadata: dict[str, str]


class _OutputItemAlways(TypedDict):
    type: Literal["image", "video", "audio", "text"]
    #: Temporary download link.
    url: str
    content_type: str
    size_bytes: int
    #: When the link stops working.
    expires_at: str


class OutputItem(_OutputItemAlways, total=False):
    """A produced file, measured from its bytes."""
    #: Pixels (image, video).
    width: int
    #: Pixels (image, video).
    height: int
    #: Seconds (video, audio).
    duration: float
    #: The text itself, up to 64 KiB (text).
    text: str


class Cost(TypedDict):
    """An amount of money."""
    #: Decimal amount with two fraction digits.
    amount: str
    #: Code of the account's billing currency.
    currency: str
    #: The same amount to the millionth, as the ledger books it.
    exact: str


class TaskError(TypedDict):
    type: Literal["upstream_error", "timeout", "content_policy_violation", "invalid_request", "canceled", "internal_error"]
    #: For people; may change.
    message: str


class Estimate(TypedDict):
    estimated_cost: Cost
    available: Cost | None
    #: False if POST /v1/generate would answer 402, 403 or 429 now.
    allowed: bool


class Links(TypedDict):
    object: Literal["list"]
    data: list[OutputItem]


class _ModelPricingAlways(TypedDict):
    unit: Literal["request", "image", "megapixel", "second", "minute", "character", "input_token", "cached_input_token", "cache_write_token", "cache_write_1h_token", "output_token", "web_search", "code_interpreter", "search_unit"]
    #: Decimal text, for `per` units.
    amount: str
    per: int
    currency: str


class ModelPricing(_ModelPricingAlways, total=False):
    #: Inputs to which this price applies.
    when: dict[str, object]
    #: Chat: for calls whose whole input, cached or not, has more tokens than this.
    above_input_tokens: int


class _ModelAlways(TypedDict):
    #: The id for `model` in requests.
    id: str
    #: Other names for `model` in requests.
    aliases: list[str]
    object: Literal["model"]
    type: Literal["model"]
    #: Seconds since 1970.
    created: int
    created_at: str
    owned_by: str
    display_name: str
    modality: Literal["chat", "embedding", "rerank", "moderation", "image", "video", "audio"]
    description: str
    #: JSON Schema 2020-12 of `input`.
    input_schema: dict[str, object]
    output_types: list[str]
    #: For each unit, the first row whose `when` fits the input applies.
    pricing: list[ModelPricing]
    limits: dict[str, float]
    capabilities: list[str]
    #: `available`: every route of the model takes tasks. `degraded`: some are paused because they kept failing, or
    #: were taken out by the operator, or the next task tests whether they work again. `unavailable`: all are paused;
    #: creating a task answers 502 `upstream_error` or 504 `timeout` until a pause is over, after 5 minutes at most.
    #: Or the operator has switched the model off: 502 until it is on again. At most a second old.
    status: Literal["available", "degraded", "unavailable"]


class Model(_ModelAlways, total=False):
    """A model."""
    #: The first day, UTC, on which the model is no longer offered.
    retires: str
    #: The model to use instead.
    replaced_by: str
    #: Of an alias: the models behind it; each conversation stays with one. Prices are those of the most expensive
    #: one, limits and capabilities those that all have.
    models: list[str]


class Balance(TypedDict):
    object: Literal["balance"]
    balance: Cost
    held: Cost
    available: Cost
    currency: str
    key: KeyUse
    #: When this was read.
    updated_at: str


class KeyUse(TypedDict):
    spend_limit: Cost | None
    spent: Cost
    remaining: Cost | None
    #: When the month ends, UTC.
    resets_at: str


class Transaction(TypedDict):
    id: str
    object: Literal["transaction"]
    type: Literal["topup", "hold", "release", "charge", "adjustment"]
    #: Effect on the balance: a hold and its release only reserve money.
    direction: Literal["in", "out", "none"]
    amount: Cost
    available_after: Cost
    held_after: Cost
    #: The task or the external reference it belongs to.
    reference_id: str | None
    key_id: str | None
    model: str | None
    reason: str | None
    #: When it was booked.
    created_at: str


class _UsageDataAlways(TypedDict):
    #: Number of tasks or calls charged.
    count: int
    cost: Cost
    #: Usage, unit → decimal text.
    units: dict[str, str]


class UsageData(_UsageDataAlways, total=False):
    #: When it begins, UTC.
    hour: str
    day: str
    model: str | None
    key: str | None
    project: str | None
    modality: str | None
    #: The end user that the caller named.
    user: str | None
    #: One of the tags in `metadata.tags`.
    tag: str | None
    #: Each name of metadata in group_by.
    metadata: dict[str, str | None]


Usage = TypedDict(
    "Usage",
    {
        "object": Literal["usage"],
        "from": "str",
        "to": "str",
        "group_by": list[str],
        "data": list[UsageData],
        "has_more": "bool",
        "total": "Cost",
    },
)


class _RefusalsDataAlways(TypedDict):
    #: Number of requests that were refused.
    count: int


class RefusalsData(_RefusalsDataAlways, total=False):
    #: When it begins, UTC.
    hour: str
    day: str
    reason: Literal["insufficient_balance", "monthly_limit", "budget_reached", "model_not_allowed", "scope_missing", "address_not_allowed", "limited_to_projects", "account_blocked", "rate_limit", "concurrency_limit", "failures_pause"]
    key: str | None
    model: str | None
    project: str | None
    #: Id of the budget that refused it.
    budget: str | None


Refusals = TypedDict(
    "Refusals",
    {
        "object": Literal["refusals"],
        "from": "str",
        "to": "str",
        "group_by": list[str],
        "data": list[RefusalsData],
        "has_more": "bool",
        "total": "int",
    },
)


class KeyLimits(TypedDict):
    generate_per_minute: int
    chat_per_minute: int
    failed_per_24h: int


class Key(TypedDict):
    object: Literal["api_key"]
    id: str
    name: str
    account_id: str
    currency: str
    spend_limit: Cost | None
    spent: Cost
    remaining: Cost | None
    #: When the month ends, UTC.
    resets_at: str
    held: Cost
    limits: KeyLimits
    #: Expiry of the key; null: never.
    expires_at: str | None
    #: Scopes of the key; null: all.
    scopes: list[Literal["chat", "media", "read"]] | None
    #: Ranges from which the key may be used; null: anywhere.
    addresses: list[str] | None
    #: Models that the key may use: ids, aliases of the operator, and beginnings such as `acme/*`; null: all.
    models: list[str] | None
    #: A limit of the key itself, of each kind of requests; `limits` has what counts. Null: none.
    requests_per_minute: int | None


class _UploadedFileAlways(TypedDict):
    #: File identifier, `file_` + 26 characters.
    id: str
    object: Literal["file"]
    bytes: int
    #: Seconds since 1970.
    created_at: int
    #: Expiry, seconds since 1970.
    expires_at: int
    filename: str
    purpose: str
    status: Literal["processed"]
    #: Kind of the file, determined from its bytes.
    kind: Literal["image", "video", "audio", "document"]
    #: Determined from its bytes.
    content_type: str


class UploadedFile(_UploadedFileAlways, total=False):
    """A file that a caller uploaded."""
    #: Pixels (image, video).
    width: int
    #: Pixels (image, video).
    height: int
    #: Seconds (video, audio).
    duration: float


class CallUsage(TypedDict):
    """Of a chat call."""
    input_tokens: int
    cached_input_tokens: int
    output_tokens: int


class Call(TypedDict):
    """A chat call or a task, without its content."""
    object: Literal["call"]
    #: The `x-request-id` of a chat call, or the id of a task.
    id: str
    kind: Literal["chat", "task"]
    model: str
    #: The last route that was tried, where the operator names routes.
    route: str | None
    #: Wire format of a chat call; null: a task.
    style: str | None
    #: Of a task; null: a chat call.
    modality: Literal["image", "video", "audio"] | None
    #: A chat call is in the list when it has ended.
    status: Literal["queued", "running", "succeeded", "failed"]
    #: Status of the answer to a chat call; 499: its caller left.
    http_status: int | None
    error_type: str | None
    #: Time to the first token of a chat answer.
    first_content_ms: int | None
    #: Time to the end; null: it has not ended.
    total_ms: int | None
    #: Of a chat call.
    usage: CallUsage | None
    cost: Cost
    #: Id of the key that made it.
    key: str
    #: The end user that the caller named.
    user: str | None
    metadata: dict[str, str]
    #: The tags in `metadata.tags`.
    tags: list[str]
    #: Creation time.
    created_at: str
    #: Path of its details, `/v1/chat/…` or `/v1/tasks/…`.
    path: str


class Feedback(TypedDict):
    """A score of one chat call or task."""
    #: Identifier, `feedback_` + 26 characters.
    id: str
    object: Literal["feedback"]
    #: The chat call (`x-request-id`) or the task that was scored.
    reference_id: str
    #: The metric.
    name: str
    #: The end user, as the caller named them.
    user: str | None
    #: From -1 to 1.
    score: float
    comment: str | None
    tags: list[str]
    metadata: dict[str, str]
    #: First time that it was given.
    created_at: str
    #: Last time that it was given.
    updated_at: str


SubscribedEvent = Literal["*", "task.*", "balance.*", "budget.*", "invoice.*", "model.*", "task.succeeded", "task.failed", "task.canceled", "balance.low", "balance.topped_up", "budget.threshold", "budget.exceeded", "invoice.created", "model.retiring"]


WebhookEventType = Literal["task.succeeded", "task.failed", "task.canceled", "balance.low", "balance.topped_up", "budget.threshold", "budget.exceeded", "invoice.created", "model.retiring"]


class WebhookFilters(TypedDict, total=False):
    """Narrow events of tasks: each that is there must fit. Other events pass."""
    #: Ids of models.
    models: list[str]
    #: Ids of keys.
    keys: list[str]
    #: Ids of projects that the key of the task is in when the event comes.
    projects: list[str]
    #: Pairs that the metadata of the task has.
    metadata: dict[str, str]


class WebhookEndpoint(TypedDict):
    id: str
    object: Literal["webhook_endpoint"]
    #: Receives a POST for each event.
    url: str
    #: For people.
    description: str
    #: Types of events, all of a kind as `task.*`, or `*` for all.
    events: list[SubscribedEvent]
    filters: WebhookFilters
    #: A disabled endpoint gets nothing.
    enabled: bool
    #: `failing`: its deliveries failed for days. `gone`: its receiver answered 410.
    disabled_reason: Literal["manual", "failing", "gone"] | None
    #: When it was disabled.
    disabled_at: str | None
    #: The first failed attempt since one arrived.
    failing_since: str | None
    #: When an attempt arrived last, to the minute.
    last_delivered_at: str | None
    #: Until when the previous secret signs, too.
    previous_secret_until: str | None
    #: When it was registered.
    created_at: str


class NewWebhookEndpoint(TypedDict):
    id: str
    object: Literal["webhook_endpoint"]
    #: Receives a POST for each event.
    url: str
    #: For people.
    description: str
    #: Types of events, all of a kind as `task.*`, or `*` for all.
    events: list[SubscribedEvent]
    filters: WebhookFilters
    #: A disabled endpoint gets nothing.
    enabled: bool
    #: `failing`: its deliveries failed for days. `gone`: its receiver answered 410.
    disabled_reason: Literal["manual", "failing", "gone"] | None
    #: When it was disabled.
    disabled_at: str | None
    #: The first failed attempt since one arrived.
    failing_since: str | None
    #: When an attempt arrived last, to the minute.
    last_delivered_at: str | None
    #: Until when the previous secret signs, too.
    previous_secret_until: str | None
    #: When it was registered.
    created_at: str
    #: Signs what it receives. Shown only once.
    secret: str


class WebhookTest(TypedDict):
    object: Literal["webhook_test"]
    delivery_id: str
    #: The status was from 200 to 299.
    delivered: bool
    status: int | None
    #: Why there was no answer.
    error: str | None
    duration_ms: int
    #: Of the answer.
    headers: dict[str, str]
    #: Its first 2 kB.
    answer: str | None


class WebhookReplay(TypedDict):
    object: Literal["webhook_replay"]
    #: Number of events.
    events: int
    #: There are more from this moment on: ask again. Null: these are all.
    next_from: str | None
    dry_run: bool


class TaskEvent(TypedDict):
    #: Of the event: deduplicate by it.
    id: str
    type: Literal["task.succeeded", "task.failed", "task.canceled"]
    #: When it happened.
    created_at: str
    account_id: str
    data: Task


class BalanceLowEventData(TypedDict):
    available: Cost
    threshold: Cost


class BalanceLowEvent(TypedDict):
    #: Of the event: deduplicate by it.
    id: str
    type: Literal["balance.low"]
    #: When it happened.
    created_at: str
    account_id: str
    data: BalanceLowEventData


class BalanceToppedUpEventData(TypedDict):
    amount: Cost
    available: Cost
    reference: str


class BalanceToppedUpEvent(TypedDict):
    #: Of the event: deduplicate by it.
    id: str
    type: Literal["balance.topped_up"]
    #: When it happened.
    created_at: str
    account_id: str
    data: BalanceToppedUpEventData


class BudgetEventData(TypedDict):
    #: The key whose limit it is; null: it is of a budget.
    key_id: str | None
    key_name: str | None
    #: The budget; null: it is of the limit of a key.
    budget_id: str | None
    budget_name: str | None
    limit: Cost
    used: Cost
    used_percent: float
    #: When it resets; null for a budget of all time.
    resets_at: str | None


class BudgetEvent(TypedDict):
    #: Of the event: deduplicate by it.
    id: str
    type: Literal["budget.threshold", "budget.exceeded"]
    #: When it happened.
    created_at: str
    account_id: str
    data: BudgetEventData


class InvoiceCreatedEventData(TypedDict):
    number: str
    #: Such as `2026-01`.
    month: str
    total: Cost
    #: Number of the invoice that it supplements.
    supplement_to: str | None


class InvoiceCreatedEvent(TypedDict):
    #: Of the event: deduplicate by it.
    id: str
    type: Literal["invoice.created"]
    #: When it happened.
    created_at: str
    account_id: str
    data: InvoiceCreatedEventData


class ModelRetiringEventDataModels(TypedDict):
    id: str
    replacement: str | None


class ModelRetiringEventData(TypedDict):
    #: The day, such as `2026-01-31`.
    ends_on: str
    models: list[ModelRetiringEventDataModels]


class ModelRetiringEvent(TypedDict):
    #: Of the event: deduplicate by it.
    id: str
    type: Literal["model.retiring"]
    #: When it happened.
    created_at: str
    account_id: str
    data: ModelRetiringEventData


EventEnvelope = TaskEvent | BalanceLowEvent | BalanceToppedUpEvent | BudgetEvent | InvoiceCreatedEvent | ModelRetiringEvent
