import type { JsonObject, ProviderConfig } from '../../../catalog/model.ts';
import { messages } from '../../../styles/messages/codec.ts';
import { chatOptionProblems } from '../../http/chat-options.ts';
import type { EventMessage } from '../../http/event-stream.ts';
import type { Adapter, ChatProvider, UpstreamParts } from '../../provider.ts';
import { bedrockProblems } from '../bedrock/check.ts';
import { exceptionOf, objectOf, openBedrockClient } from '../bedrock/client.ts';
import { betasIn } from './betas.ts';

/** The version of bodies on Bedrock (@anthropic-ai/bedrock-sdk 0.33.1, August 2026). */
const version = 'bedrock-2023-05-31';

/**
 * Claude by Bedrock's InvokeModel: the messages style with the model in the path, a version in the body, and streams in
 * AWS's frames.
 */
export const anthropic_bedrock = {
  serves: (kind) => kind === 'chat',
  checkChatOptions: chatOptionProblems,
  checkProvider: bedrockProblems,
  openChat,
} satisfies Adapter;

function openChat(config: ProviderConfig, parts: UpstreamParts): ChatProvider {
  const client = openBedrockClient(config, parts);
  return {
    styles: [messages],
    has_no_links: true, // images stand in the body there (platform.claude.com, vision, November 2026)
    send: (call, signal) => {
      const body = bodyFor(call.body, call.headers);
      if (call.stream) return client.stream('invoke-with-response-stream', call, body, signal, renderChunk);
      return client.post('invoke', call, body, signal);
    },
    // CountTokens wants a body that could be sent, so with max_tokens, which count for nothing.
    countTokens: (call, signal) => {
      const body = bodyFor({ max_tokens: 1, ...call.body }, call.headers);
      const bytes = Buffer.from(JSON.stringify(body)).toString('base64');
      return client.count(call, { invokeModel: { body: bytes } }, signal);
    },
    close: () => client.close(),
  };
}

/** Betas stand in the body there; whether it is a stream is said by the path. */
function bodyFor(body: JsonObject, headers: Record<string, string>): JsonObject {
  const { model: _, stream: __, ...rest } = body;
  const betas = betasIn(headers);
  return { ...rest, anthropic_version: version, ...(betas.length > 0 && { anthropic_beta: betas }) };
}

/** Exceptions in a stream, in the words of the style. */
const error_types: ReadonlyMap<string, string> = new Map([
  ['validationException', 'invalid_request_error'],
  ['throttlingException', 'rate_limit_error'],
  ['serviceUnavailableException', 'overloaded_error'],
  ['modelTimeoutException', 'timeout_error'],
]);

/** The event of the style in a frame; empty for frames that have none. */
function renderChunk(message: EventMessage): string {
  const exception = exceptionOf(message);
  if (exception) {
    const error = { type: error_types.get(exception.name) ?? 'api_error', message: exception.message };
    return `event: error\ndata: ${JSON.stringify({ type: 'error', error })}\n\n`;
  }
  const { bytes } = objectOf(message.payload);
  if (typeof bytes !== 'string') return '';
  const text = Buffer.from(bytes, 'base64').toString('utf8');
  const event = objectOf(Buffer.from(text));
  const { type } = event;
  if (typeof type !== 'string' || !/^\w+$/.test(type)) return '';
  return `event: ${type}\ndata: ${withoutMetrics(event, text)}\n\n`;
}

/** Leaves out the measures of Bedrock, which are the operator's. Line feeds between members would end the event. */
function withoutMetrics(event: JsonObject, text: string): string {
  const own = Object.keys(event).filter((name) => name.startsWith('amazon-bedrock-'));
  if (own.length === 0) return text.replaceAll(/[\r\n]+/g, ' ');
  return JSON.stringify(Object.fromEntries(Object.entries(event).filter(([name]) => !own.includes(name))));
}
