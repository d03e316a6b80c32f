import { ConnectionError, type ChatStream, type Cost } from '../../../clients/typescript/src/index.ts';
import { CommandError } from '../result.ts';
import type { Service } from './service.ts';
import { oneLine } from './terminal.ts';

/** One streamed call of a chat model. */

export type Message = { role: 'system' | 'user' | 'assistant'; content: string };

export type ChatRequest = { model: string; messages: readonly Message[]; max_tokens: number | undefined };

/** The service sends a sign of life every 15 s. */
const silence_ms_max = 120_000;

/** Prepares a call. A person sees an error sooner than another attempt. */
export function openStream({ client }: Service, request: ChatRequest): ChatStream {
  return client.chat.stream({ ...request }, { timeout_ms: silence_ms_max, max_retries: 0 });
}

/**
 * Yields what a person reads, as it comes: the text, or why there is none. Throws the reason of the signal, and
 * CommandError if the answer breaks off.
 */
export async function* textsOf(
  stream: ChatStream,
  { url }: Service,
  signal: AbortSignal,
): AsyncGenerator<string, void, undefined> {
  const onAbort = () => stream.abort(signal.reason);
  if (signal.aborted) onAbort();
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    for await (const { choices } of stream) {
      const { content, refusal } = choices[0]?.delta ?? {};
      const text = content ?? refusal ?? '';
      if (text !== '') yield text;
    }
  } catch (error) {
    if (!(error instanceof ConnectionError) || stream.request_id === undefined) throw error;
    throw new CommandError(`${url} gave no whole answer: ${oneLine(error.message)}`, 5);
  }
}

/** `acme/assistant: 0.01 USD, 12 + 340 tokens`. */
export function footer(model: string, { usage, finish_reason }: ChatStream, cost: Cost | undefined): string {
  const parts = [
    ...(cost ? [shownCost(cost)] : []),
    ...(usage ? [`${usage.prompt_tokens} + ${usage.completion_tokens} tokens`] : []),
    ...(finish_reason === 'length' ? ['cut at the most tokens of an answer'] : []),
    ...(finish_reason === 'content_filter' ? ['ended by a content filter'] : []),
  ];
  return `${oneLine(model, 100)}: ${parts.join(', ')}`;
}

export function shownCost({ exact, currency }: Cost): string {
  return oneLine(`${exact} ${currency}`, 60);
}
