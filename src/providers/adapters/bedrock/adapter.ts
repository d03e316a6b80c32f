import type { OptionProblem } from '../../../catalog/check-settings.ts';
import { isObject, type JsonObject, type ProviderConfig } from '../../../catalog/model.ts';
import { converse } from '../../../styles/converse/codec.ts';
import { chatOptionProblems } from '../../http/chat-options.ts';
import type { EventMessage } from '../../http/event-stream.ts';
import type { Adapter, ChatProvider, UpstreamParts } from '../../provider.ts';
import { bedrockProblems } from './check.ts';
import { exceptionOf, openBedrockClient } from './client.ts';

/**
 * All models of chat on Bedrock, by Converse. Options of a route: `additional_fields`, fields of the model's own;
 * `guardrail`, as `guardrailConfig` takes it.
 */
export const bedrock = {
  serves: (kind) => kind === 'chat',
  checkChatOptions,
  checkProvider: bedrockProblems,
  openChat,
} satisfies Adapter;

function checkChatOptions({ additional_fields = {}, guardrail = {}, ...options }: JsonObject): OptionProblem[] {
  const message = 'must be an object, as Bedrock takes it';
  const own = Object.entries({ additional_fields, guardrail }).filter(([, value]) => !isObject(value));
  return [...chatOptionProblems(options), ...own.map(([field]) => ({ field, message }))];
}

function openChat(config: ProviderConfig, parts: UpstreamParts): ChatProvider {
  const client = openBedrockClient(config, parts);
  return {
    styles: [converse],
    has_no_links: true, // images and documents are bytes there, or in a bucket of the operator's
    send: (call, signal) => {
      const body = withOptions(call.body, call.options);
      if (call.stream) return client.stream('converse-stream', call, body, signal, renderEvent);
      return client.post('converse', call, body, signal);
    },
    countTokens: (call, signal) => client.count(call, { converse: call.body }, signal),
    close: () => client.close(),
  };
}

function withOptions(body: JsonObject, { additional_fields, guardrail }: JsonObject): JsonObject {
  const { additionalModelRequestFields: own } = body;
  return {
    ...body,
    ...(isObject(additional_fields) && {
      additionalModelRequestFields: { ...(isObject(own) && own), ...additional_fields },
    }),
    ...(isObject(guardrail) && { guardrailConfig: guardrail }),
  };
}

/** Exceptions that tell of the request, in a word that is known of them. */
const error_types: ReadonlyMap<string, string> = new Map([['validationException', 'invalid_request_error']]);

/** A frame as an event with its name. Line feeds between members would end it. */
function renderEvent(message: EventMessage): string {
  const exception = exceptionOf(message);
  if (exception) {
    const error = { type: error_types.get(exception.name) ?? exception.name, message: exception.message };
    return `event: error\ndata: ${JSON.stringify({ error })}\n\n`;
  }
  const name = message.headers[':event-type'] ?? '';
  if (!/^\w+$/.test(name)) return '';
  return `event: ${name}\ndata: ${message.payload.toString('utf8').replaceAll(/[\r\n]+/g, ' ')}\n\n`;
}
