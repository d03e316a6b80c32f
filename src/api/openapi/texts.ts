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

export const error_descriptions: Record<number, string> = {
  400: 'The request is malformed: broken JSON, a missing or an unknown field or parameter.',
  401: 'The API key is missing, malformed or deleted.',
  402: 'The available balance is lower than the cost or the hold.',
  403: "The key's monthly spend limit is reached, a rule of the key excludes the call, or the account is blocked.",
  404: 'Not found, or it belongs to another account.',
  409: 'Not possible in the current state.',
  413: 'The body is too large.',
  415: 'The body is not declared as JSON.',
  422: 'The input does not match the model; the message names the field.',
  429: 'Too many requests with this key (`rate_limit`), or too many failed generations (`rate_limit_error`).',
  500: 'An internal error.',
  502: 'The model provider returned an error.',
  503: 'The service is starting, stopping or without its database.',
  504: 'The model did not answer in time.',
};

/** A sentence for each tag of the endpoints. */
export const tag_descriptions: Record<string, string> = {
  Tasks: 'Images, videos and audio: create a task, wait for it, cancel it, and delete its files.',
  Models: 'The models of this service, with their inputs, prices and limits.',
  Chat: 'Conversations with models, in the styles of the SDKs of OpenAI, Anthropic and Google.',
  Embeddings: 'Vectors of texts, for search and comparison.',
  Rerank: 'Documents in the order of their relevance to a query.',
  Moderation: 'Categories of harm in texts and images.',
  'Media for SDKs': 'Images, audio and videos in the format of the OpenAI SDKs. Every call creates a task.',
  Calls: 'Every chat call and every task of the account in one list.',
  Money: 'Balance, movements, usage, and the limits of the calling key.',
  Feedback: 'What the users of a program think of an answer: a score of a chat call or of a task.',
  Files: 'Files that callers upload for their calls, and the files of finished tasks.',
  Webhooks: 'Endpoints that get the events of the account, signed.',
  Batches: 'Many requests in one file, answered within a day.',
  'Sign in of programs': 'The device grant of OAuth: a person gives a program a key, without typing it.',
  Service: 'This document, the MCP server, and whether the service is alive.',
};
