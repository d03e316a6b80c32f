import type { JsonObject } from '../../catalog/model.ts';
import { completions_errors } from '../completions/errors.ts';
import type { AnswerOptions, CallerCodec, ChatRequest } from '../codec.ts';
import { readCount, words } from '../fields.ts';
import { frameOf } from '../stream.ts';
import { background } from './background.ts';
import { compaction } from './compaction.ts';
import { sameResponses, sameResponsesBody } from './passthrough.ts';
import { output_min, writeResponses } from './render-request.ts';
import { readHead, responses_body } from './head.ts';
import { readResponses } from './request.ts';
import { readState } from './state.ts';
import {
  answerId,
  echoOf,
  finishOf,
  readResponsesAnswer,
  writeError,
  writeResponse,
  writeResponsesAnswer,
  type ResponseOptions,
} from './response.ts';
import { ResponsesReader } from './read-stream.ts';
import { ResponsesWriter } from './stream.ts';
import { responses_images } from './images.ts';
import { responses_search } from './searches.ts';
import { callerTools, isFunctionLike } from './tools.ts';
import { usage_format } from './usage.ts';

const name = 'responses';

/** The style of `/v1/responses`. */
export const responses: CallerCodec = {
  name,
  upstream: {
    renderRequest: writeResponses,
    parseResponse: (body, request_id) => [readResponsesAnswer(body, request_id)],
    openReader: (request_id) => new ResponsesReader(request_id),
    isChosen: (request, quirks, is_usual) => {
      const { responses: option } = quirks;
      if (option === false || (!is_usual && option === undefined)) return false;
      return request.style.name === name || option === 'always' || (option === 'tools' && hasTools(request));
    },
    outputMin: ({ responses: option }) => (option === 'tools' || option === 'always' ? output_min : 1),
  },
  caller: {
    endpoint: {
      path: '/v1/responses',
      summary: 'Chat in the responses style',
      description:
        'Every chat model takes it. The answer is stored for `previous_response_id` and `item_reference`, unless `store` is false; `conversation` is one of `/v1/conversations`. With `background` the answer comes at once, and a worker makes the response. Tools that a provider would run and that the model is offered without are left out, as `x-tools-left-out` says.',
      body: responses_body,
      examples: { text: { model: 'sandbox/chat', input: 'Hello' } },
      response: 'The response, or its stream of named events.',
      count: {
        path: '/v1/responses/input_tokens',
        summary: 'Count the tokens of a request in the responses style',
        response: '`{"object": "response.input_tokens", "input_tokens": N}`',
        render: (input_tokens) => ({ object: 'response.input_tokens', input_tokens }),
      },
    },
    errors: completions_errors,
    members: {
      sdk: words(`
    access_programs background context_management conversation image include input instructions max_output_tokens
    max_tool_calls metadata model moderation multi_agent parallel_tool_calls previous_response_id prompt
    prompt_cache_key prompt_cache_options prompt_cache_retention reasoning safety_identifier service_tier store stream
    stream_options temperature text tool_choice tools top_logprobs top_p truncation user
  `),
      vendor: words('frequency_penalty presence_penalty seed stop top_k'),
      own: words('usage'),
    },
    turns_field: 'input',
    isFunction: isFunctionLike,
    tool_bound: {
      read: (body) => readCount(body, 'max_tool_calls', 'max_tool_calls', 1),
      write: (body, calls_max) => ({ ...body, max_tool_calls: calls_max }),
    },
    search: responses_search,
    images: responses_images,
    stop_field: 'stop',
    usage: usage_format,
    readRequest: readHead,
    parseRequest: readResponses,
    renderResponse: ([answer], usage, { body }, options) =>
      answer ? writeResponsesAnswer(answer, usage, ownOptions(body, options)) : {},
    openWriter: ({ body }, options) => new ResponsesWriter(ownOptions(body, options)),
    finishOf,
    answerId,
    heartbeat: Buffer.from(': keep-alive\n\n'),
    errorEvent: ({ type, message, code, param = null, request_id, model, created }) => {
      // SDKs look for the code at the top, or throw what they find in `error`; Codex reads the second event alone.
      const error = { message, type, param, code: code ?? null, request_id };
      const { store: _, ...echo } = echoOf({}); // the request is let go by now: its members are the usual ones
      const options = { request_id, model, created, echo };
      const failed = writeResponse(options, { status: 'failed', output: [] });
      const response = { ...failed, error: writeError({ type, code, message }) };
      return Buffer.concat([
        frameOf('error', { type: 'error', code: code ?? type, message, param, error }),
        frameOf('response.failed', { type: 'response.failed', response }),
      ]);
    },
    streamed_codes: ['context_length_exceeded'],
    passthrough: {
      body: sameResponsesBody,
      countedBody: ({ body }, { model }): JsonObject => ({ ...body, model }),
      openStream: sameResponses,
    },
    state: { read: readState, compaction, background },
  },
};

function ownOptions(body: JsonObject, options: AnswerOptions): ResponseOptions {
  return { ...options, echo: { ...echoOf(body), ...options.echo }, tools: callerTools(body) };
}

function hasTools({ body }: ChatRequest): boolean {
  return [body['tools'], body['functions']].some((tools) => Array.isArray(tools) && tools.length > 0);
}
