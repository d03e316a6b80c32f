"""The client of Medley: images, video, audio and transcripts as tasks, and chat."""

from ._async.chat import AsyncChat, AsyncChatStream
from ._async.client import AsyncMedley
from ._async.cursor import AsyncCursor
from ._async.feedback import AsyncFeedbackCalls
from ._async.files import AsyncFiles, AsyncFileSource
from ._async.models import AsyncModels
from ._async.tasks import AsyncTasks
from ._chat import (
    ChatAnswer,
    ChatBody,
    ChatChoice,
    ChatCost,
    ChatFunction,
    ChatMessage,
    ChatRecord,
    ChatToolCall,
    ChatUsage,
)
from ._errors import (
    ApiError,
    AuthenticationError,
    ConnectionFailedError,
    FailedGenerationsError,
    FieldMistake,
    InsufficientBalanceError,
    InternalError,
    InvalidRequestError,
    MedleyError,
    NotFoundError,
    PermissionDeniedError,
    RateLimitError,
    RequestTimeoutError,
    TaskFailedError,
    UpstreamError,
    UpstreamTimeoutError,
    WaitTimeoutError,
    WebhookError,
)
from ._outputs import Downloadable
from ._requests import Page
from ._sync.chat import Chat, ChatStream
from ._sync.client import Medley
from ._sync.cursor import Cursor
from ._sync.feedback import FeedbackCalls
from ._sync.files import Files, FileSource
from ._sync.models import Models
from ._sync.tasks import Tasks
from ._version import __version__
from ._webhook import WebhookEvent, verify_webhook
from .types import (
    Balance,
    Cost,
    Estimate,
    Feedback,
    Key,
    KeyUse,
    Model,
    OutputItem,
    Task,
    TaskError,
    Transaction,
    UploadedFile,
    Usage,
)

__all__ = [
    "ApiError",
    "AsyncChat",
    "AsyncChatStream",
    "AsyncCursor",
    "AsyncFeedbackCalls",
    "AsyncFileSource",
    "AsyncFiles",
    "AsyncMedley",
    "AsyncModels",
    "AsyncTasks",
    "AuthenticationError",
    "Balance",
    "Chat",
    "ChatAnswer",
    "ChatBody",
    "ChatChoice",
    "ChatCost",
    "ChatFunction",
    "ChatMessage",
    "ChatRecord",
    "ChatStream",
    "ChatToolCall",
    "ChatUsage",
    "ConnectionFailedError",
    "Cost",
    "Cursor",
    "Downloadable",
    "Estimate",
    "FailedGenerationsError",
    "Feedback",
    "FeedbackCalls",
    "FieldMistake",
    "FileSource",
    "Files",
    "InsufficientBalanceError",
    "InternalError",
    "InvalidRequestError",
    "Key",
    "KeyUse",
    "Medley",
    "MedleyError",
    "Model",
    "Models",
    "NotFoundError",
    "OutputItem",
    "Page",
    "PermissionDeniedError",
    "RateLimitError",
    "RequestTimeoutError",
    "Task",
    "TaskError",
    "TaskFailedError",
    "Tasks",
    "Transaction",
    "UploadedFile",
    "UpstreamError",
    "UpstreamTimeoutError",
    "Usage",
    "WaitTimeoutError",
    "WebhookError",
    "WebhookEvent",
    "__version__",
    "verify_webhook",
]
