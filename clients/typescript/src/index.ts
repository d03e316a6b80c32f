export type { Chat } from './chat.ts';
export type { ChatStream } from './chat-stream.ts';
export type * from './chat-types.ts';
export type { Calls } from './calls.ts';
export { Medley, type MedleyOptions, type Models } from './client.ts';
export { Cursor, type Page } from './cursor.ts';
export type { Downloadable } from './download.ts';
export {
  ApiError,
  AuthenticationError,
  ConnectionError,
  FailedGenerationsError,
  InsufficientBalanceError,
  InternalError,
  InvalidRequestError,
  MedleyError,
  NotFoundError,
  PermissionDeniedError,
  RateLimitError,
  RequestTimeoutError,
  UpstreamError,
  UpstreamTimeoutError,
  WebhookError,
  type FieldMistake,
} from './errors.ts';
export type { FeedbackCalls, FeedbackOptions } from './feedback.ts';
export type { Files, FileSource, UploadOptions } from './files.ts';
export type { CallOptions, Fetch } from './http.ts';
export {
  TaskFailedError,
  WaitTimeoutError,
  type CreateOptions,
  type GenerateOptions,
  type SucceededTask,
  type Tasks,
  type WaitOptions,
} from './tasks.ts';
export type * from './inputs.ts';
export type * from './types.ts';
export {
  verifyWebhook,
  type EndpointEvent,
  type TaskWebhook,
  type WebhookEvent,
  type WebhookHeaders,
  type WebhookOptions,
} from './webhook.ts';
export type { ReplayOptions, WebhookEndpoints } from './webhook-endpoints.ts';
