import type { CallerCodec } from '../codec.ts';
import { words } from '../fields.ts';
import { messages_body } from '../request.ts';
import { frameOf } from '../stream.ts';
import { allowed_betas } from './betas.ts';
import { messages_errors } from './errors.ts';
import { countedBody, sameMessages, sameMessagesBody } from './passthrough.ts';
import { writeMessages } from './render-request.ts';
import { readHead, readMessages, replaceLink } from './request.ts';
import { answerId, readMessagesAnswer, writeMessagesAnswer } from './response.ts';
import { isFunction, readToolBound, writeToolBound } from './settings.ts';
import { MessagesReader, MessagesWriter } from './stream.ts';
import { messages_search } from './searches.ts';
import { usage_format } from './usage.ts';

/** Its SDKs have another form of fallbacks, too. */
const messages_style_body = {
  ...messages_body,
  properties: {
    ...messages_body.properties,
    max_tokens: { type: 'integer', minimum: 1, description: 'Maximum output tokens.' },
    fallbacks: {
      type: 'array',
      maxItems: 3,
      items: {
        type: 'object',
        required: ['model'],
        properties: { model: { type: 'string', examples: ['acme/small'] } },
      },
      description: 'As `models`, in the form of the SDKs of this style.',
    },
  },
};

/** The style of `/v1/messages`. */
export const messages: CallerCodec = {
  name: 'messages',
  upstream: {
    renderRequest: writeMessages,
    parseResponse: (body) => [readMessagesAnswer(body)],
    openReader: () => new MessagesReader(),
    reports_hour_caches: true,
  },
  caller: {
    endpoint: {
      path: '/v1/messages',
      summary: 'Chat in the messages style',
      description: 'Takes what the SDKs of Anthropic send, for every chat model; `stream: true` answers events.',
      body: messages_style_body,
      examples: { text: { model: 'sandbox/chat', max_tokens: 500, messages: [{ role: 'user', content: 'Hello' }] } },
      response: 'The answer, or its stream, in the style of this path.',
      count: {
        path: '/v1/messages/count_tokens',
        summary: 'Count the tokens of a conversation',
        response: '`{"input_tokens": N}`',
        render: (input_tokens) => ({ input_tokens }),
      },
    },
    errors: messages_errors,
    members: {
      sdk: words(`
    max_tokens messages model billing_policy cache_control compaction container context_management diagnostics
    fallback_credit_token fallbacks inference_geo mcp_servers metadata output_config output_format service_tier speed
    stop_sequences stream system temperature thinking thread tool_choice tools top_k top_p user_profile_id workspace_id
  `),
      vendor: words(''),
    },
    headers: ['anthropic-version', 'anthropic-beta'],
    betas: { header: 'anthropic-beta', allowed: allowed_betas, long_context: /^context-1m-/ },
    turns_field: 'messages',
    isFunction,
    tool_bound: { read: readToolBound, write: writeToolBound },
    tool_fields: ['mcp_servers'],
    search: messages_search,
    stop_field: 'stop_sequences',
    usage: usage_format,
    readRequest: readHead,
    parseRequest: readMessages,
    renderResponse: ([answer], usage, _request, { model, request_id }) =>
      answer ? writeMessagesAnswer(answer, usage, model, request_id) : {},
    openWriter: (_request, options) => new MessagesWriter(options),
    finishOf: ({ stop_reason }) => stop_reason,
    answerId,
    heartbeat: frameOf('ping', { type: 'ping' }),
    errorEvent: ({ type, message, code, param, request_id }) => {
      const more = { ...(code !== undefined && { code }), ...(param !== undefined && { param }) };
      return frameOf('error', { type: 'error', error: { type, message, ...more }, request_id });
    },
    replaceLink,
    passthrough: { body: sameMessagesBody, countedBody, openStream: sameMessages },
  },
};
