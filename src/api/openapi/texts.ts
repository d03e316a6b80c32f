import { Type } from 'typebox';

export const introduction = `Chat, image, video and audio models behind one API key and one account balance.

**Authentication.** Send \`Authorization: Bearer <API_KEY>\` or \`x-api-key: <API_KEY>\` with every request below \`/v1\`.

**Tasks.** \`POST /v1/generate\` creates a task and holds its estimated cost. Poll \`GET /v1/tasks/{id}\`, or let the
call wait with \`?wait=60\`. A task that fails costs nothing.

**Chat.** \`POST /v1/chat/completions\`, \`POST /v1/responses\` and \`POST /v1/messages\` take what SDKs of these three
styles send, for every chat model: the base URL is this server's with \`/v1\`, or without it for the messages style.

**Money.** Every amount is a decimal text with two digits and its currency; \`exact\` beside it has the six digits that
are booked. Of two digits costs are rounded half up, estimates up, balances down: add up \`exact\`, not \`amount\`.

**Errors.** Branch on the HTTP status and on \`error.type\`; \`message\` is for people and may change. Retry only 429, 502
and 504, after \`Retry-After\` where it is given; \`x-should-retry: false\` says that it will not help.

**Limits.** Per key and minute: 60 requests to \`POST /v1/generate\`, 600 to the chat endpoints together, 600 to all others
together, unless the operator has chosen other numbers. \`x-ratelimit-…\` headers tell what is left.`;

const request_id = Type.String({ description: 'The same as the header x-request-id.' });

const type = Type.Enum(
  [
    'invalid_request',
    'authentication_error',
    'insufficient_balance',
    'permission_error',
    'not_found',
    'rate_limit',
    'rate_limit_error',
    'internal_error',
    'upstream_error',
    'timeout',
  ],
  { description: 'Branch on this and on the HTTP status.' },
);

const message = Type.String({ description: 'For people; may change.' });

export const service_error = Type.Object(
  {
    error: Type.Object({
      type,
      message,
      code: Type.Optional(Type.String({ description: 'Narrows the type down.' })),
      param: Type.Optional(Type.String({ description: 'The field or parameter at fault.' })),
      details: Type.Optional(
        Type.Array(Type.Object({ field: Type.String(), rule: Type.String(), message: Type.String() }), {
          description: 'All mistakes, if there are several.',
        }),
      ),
      request_id,
    }),
  },
  { description: 'An error of the service.' },
);

export const completions_error = Type.Object(
  {
    error: Type.Object({
      message,
      type,
      param: Type.Union([Type.String(), Type.Null()]),
      code: Type.Union([Type.String(), Type.Null()]),
      request_id,
    }),
  },
  { description: 'An error in the chat-completions style.' },
);

export const messages_error = Type.Object(
  { type: Type.Literal('error'), error: Type.Object({ type, message }), request_id },
  { description: 'An error in the messages style.' },
);

export const error_descriptions: Record<number, string> = {
  400: 'The request is malformed: broken JSON, a missing or an unknown field or parameter.',
  401: 'The API key is missing, malformed or deleted.',
  402: 'The available balance is lower than the cost or the hold.',
  403: "The key's monthly spend limit is reached, or the account is blocked.",
  404: 'There is no such thing, or it belongs to another account.',
  409: 'Not possible in the present state.',
  413: 'The body is too large.',
  415: 'The body is not declared as JSON.',
  422: 'The input does not match the model; the message names the field.',
  429: 'Too many requests with this key (`rate_limit`), or too many failed generations (`rate_limit_error`).',
  500: 'Something went wrong on our side.',
  502: 'The model provider returned an error.',
  503: 'The service is starting, stopping or without its database.',
  504: 'The model did not answer in time.',
};
