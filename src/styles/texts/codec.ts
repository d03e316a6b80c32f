import type { JsonObject } from '../../catalog/model.ts';
import type { CallerCodec, ChatRequest, Passthrough, Target } from '../codec.ts';
import { completions } from '../completions/codec.ts';
import { limitTokens, relayChoices, setStreamOptions } from '../completions/passthrough.ts';
import { finishOf } from '../completions/response.ts';
import { usage_format } from '../completions/usage.ts';
import { words } from '../fields.ts';
import { withoutSampling } from '../quirks.ts';
import { deliver, type StreamState } from '../stream.ts';
import { answerId, object, readTexts, TextWriter, writeTexts } from './answer.ts';
import { addedBytes, echoedLengths, echoOf, readHead, readTextRequest, wantsLogprobs } from './request.ts';
import { text_body } from './schema.ts';

const name = 'texts';

/**
 * The style of `/v1/completions`, from before there was chat. An upstream is asked in it where its route says that it has
 * that path; others get the prompt as a chat.
 */
export const texts: CallerCodec = {
  name,
  upstream: {
    renderRequest: onlyOwn,
    parseResponse: readTexts,
    openReader: onlyOwn,
    isChosen: ({ style }, { text_completions }) => style.name === name && text_completions === true,
  },
  caller: {
    endpoint: {
      path: '/v1/completions',
      summary: 'Continue a text',
      description:
        'Every chat model takes it: the prompt becomes a chat. `logprobs` need a model whose upstream has the style of chat completions; several prompts, prompts as tokens, `best_of` and a stream of several texts one that has this path.',
      body: text_body,
      examples: { text: { model: 'sandbox/chat', prompt: 'Once upon a time' } },
      response: 'The text, or its stream.',
    },
    errors: completions.caller.errors,
    members: {
      sdk: words(`
    best_of echo frequency_penalty logit_bias logprobs max_tokens model n presence_penalty prompt seed stop stream
    stream_options suffix temperature top_p user
  `),
      vendor: words('min_p min_tokens repetition_penalty top_k'),
    },
    stop_field: 'stop',
    addedBytes,
    usage: usage_format,
    readRequest: readHead,
    parseRequest: readTextRequest,
    renderResponse: (answers, usage, { body }, options) =>
      writeTexts(answers, usage, { ...options, echo: echoOf(body), has_logprobs: wantsLogprobs(body) }),
    openWriter: ({ body, wants_usage }, options) =>
      new TextWriter({ ...options, wants_usage, echo: echoOf(body), has_logprobs: wantsLogprobs(body) }),
    finishOf,
    answerId,
    heartbeat: completions.caller.heartbeat,
    errorEvent: completions.caller.errorEvent,
    passthrough: { body: sameTextBody, openStream: sameText },
  },
};

/** Throws: a caller of another style is never asked in this one. */
function onlyOwn(): never {
  throw new Error('Only callers of its own style are asked in the style of texts.');
}

function sameTextBody(request: ChatRequest, target: Target): JsonObject {
  const body: JsonObject = { ...request.body, model: target.model, max_tokens: limitTokens(request, target) };
  setStreamOptions(body, request, target);
  if (target.quirks.sampling === false) withoutSampling(body);
  return body;
}

/** Relays a stream. The model has not written the prompts that it repeats: they do not count as output. */
function sameText(options: Parameters<Passthrough['openStream']>[0], state: StreamState) {
  const { n, body } = options.request;
  const lengths = echoedLengths(body);
  const per_prompt = lengths.length === 0 ? 1 : n / lengths.length;
  const echoed = new Map<number, number>();
  const noteChoice = (choice: JsonObject): void => {
    const { index, text: piece } = choice;
    if (typeof piece !== 'string') return;
    const at = typeof index === 'number' ? index : 0;
    const rest = echoed.get(at) ?? lengths[Math.floor(at / per_prompt)] ?? 0;
    echoed.set(at, Math.max(0, rest - piece.length));
    deliver(state, piece.slice(rest));
  };
  return relayChoices(options, state, { object, id: answerId(options.request_id), noteChoice });
}
