import { isObject, type JsonObject, type ProviderConfig } from '../../../catalog/model.ts';
import { parseExactly } from '../../../lib/long-integers.ts';
import { openChatClient } from '../../http/chat-http.ts';
import { asServerEvents, type EventMessage } from '../../http/event-stream.ts';
import type { Hints } from '../../http/refusal.ts';
import type { ChatCall, ChatReply, UpstreamParts } from '../../provider.ts';
import { readCount } from '../../http/token-count.ts';

/** The HTTP of Bedrock's runtime: a model in the path, signed or with an API key of Bedrock. */
export type BedrockClient = {
  /** Posts a body to a method of a model. Throws as `send` of a provider does. */
  post(method: string, call: Call, body: object, signal: AbortSignal): Promise<ChatReply>;
  /** The same for a stream, whose frames are written as server-sent events. */
  stream(method: string, call: Call, body: object, signal: AbortSignal, render: Render): Promise<ChatReply>;
  /** Counts the tokens of an input, as `CountTokens` takes it. */
  count(call: Call, input: JsonObject, signal: AbortSignal): Promise<number>;
  close(): Promise<void>;
};

type Call = Pick<ChatCall, 'model' | 'timeout_ms'>;

type Render = (message: EventMessage) => string;

/** Refusals with status 400 or 403 that are about our model, region or account, whatever the request is. */
const hints: Hints = {
  unavailable:
    /model identifier is invalid|on-demand throughput isn.t supported|doesn.t support (?:converse|the model)|reached the end of its life|marked by provider as legacy|model use case details have not been submitted|operation not allowed|ServiceQuotaExceeded/i,
  about_us: /the security token included in the request|you don't have access to the model|signature/i,
};

/** Opens a client of Bedrock; without `base_url` its address follows from the region of the credentials. */
export function openBedrockClient(config: ProviderConfig, parts: UpstreamParts): BedrockClient {
  const base_url = config.base_url ?? usualUrl(config);
  const client = openChatClient({ ...config, base_url }, parts, hints);
  const key: Record<string, string> = config.api_key === undefined ? {} : { authorization: `Bearer ${config.api_key}` };
  const post = (accept: string, method: string, { model, timeout_ms }: Call, body: object, signal: AbortSignal) => {
    const options = { signal, connect_timeout_ms: timeout_ms.connect };
    return client.post(`/model/${encodedModel(model)}/${method}`, { ...key, accept }, body, options);
  };
  return {
    post: (method, call, body, signal) => post('application/json', method, call, body, signal),
    stream: async (method, call, body, signal, render) => {
      const reply = await post('application/vnd.amazon.eventstream', method, call, body, signal);
      return { ...reply, body: asServerEvents(reply.body, render) };
    },
    count: async (call, input, signal) =>
      readCount(await post('application/json', 'count-tokens', call, { input }, signal), 'inputTokens'),
    close: () => client.close(),
  };
}

function usualUrl({ credentials }: ProviderConfig): string {
  const region = credentials?.kind === 'aws' ? credentials.region : 'us-east-1';
  return `https://bedrock-runtime.${region}.amazonaws.com`;
}

/**
 * An id or an ARN in a path. All of it is one part, as AWS's own SDK writes it: `:` and `/` of an inference profile's ARN
 * are encoded.
 */
function encodedModel(model: string): string {
  return encodeURIComponent(model).replaceAll(
    /[!'()*]/g,
    (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

/** The name of an exception in a stream, in small letters at its start; undefined for any other message. */
export function exceptionOf({ headers, payload }: EventMessage): { name: string; message: string } | undefined {
  const { ':message-type': kind, ':exception-type': exception, ':error-code': code, ':event-type': event } = headers;
  const is_exception = kind === 'exception' || kind === 'error' || event?.endsWith('Exception') === true;
  if (!is_exception) return undefined;
  const name = exception ?? code ?? event ?? 'exception';
  const message = objectOf(payload)['message'] ?? headers[':error-message'];
  return { name: name.charAt(0).toLowerCase() + name.slice(1), message: typeof message === 'string' ? message : name };
}

/** The JSON object of a payload. Throws for what is none. */
export function objectOf(payload: Buffer): JsonObject {
  const value = payload.length === 0 ? {} : parseExactly(payload.toString('utf8'));
  if (!isObject(value)) throw new Error('An event is no JSON object.');
  return value;
}
