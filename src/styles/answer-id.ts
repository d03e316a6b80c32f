import type { CallerStyle } from './conversation.ts';

const prefixes: Readonly<Record<CallerStyle, string>> = {
  completions: 'chatcmpl-',
  messages: 'msg_',
  responses: 'resp_',
};

/**
 * The id of an answer, which is ours whatever the upstream's is: some upstreams number theirs anew, and clients merge
 * two answers with one id into one turn. The upstream's own is in the record of the call.
 */
export function answerId(style: CallerStyle, request_id: string): string {
  return prefixes[style] + request_id;
}

/** An id of an upstream, if it is one. */
export function upstreamIdOf(id: unknown): string | undefined {
  return typeof id === 'string' && id !== '' ? id : undefined;
}
