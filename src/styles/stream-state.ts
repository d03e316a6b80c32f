import type { ChatEvent, Usage } from './conversation.ts';
import { addText, type TextSize } from './text-size.ts';

/** What is known of a stream so far; see Relay. */
export type StreamState = {
  has_begun: boolean;
  has_content: boolean;
  is_ending: boolean;
  reasons: boolean;
  is_complete: boolean;
  failure: { type: string; message: string } | undefined;
  usage: Partial<Usage> | undefined;
  delivered: TextSize;
  finish: string | undefined;
  upstream_id: string | undefined;
};

export function newStreamState(): StreamState {
  return {
    has_begun: false,
    has_content: false,
    is_ending: false,
    reasons: false,
    is_complete: false,
    failure: undefined,
    usage: undefined,
    delivered: { ascii_bytes: 0, other_bytes: 0 },
    finish: undefined,
    upstream_id: undefined,
  };
}

export function fail(state: StreamState, message: string, type = 'upstream_error'): void {
  state.failure ??= { type, message };
}

/** Text, thinking or arguments have come; an empty piece is none. */
export function deliver(state: StreamState, text: string): void {
  if (text === '') return;
  state.has_content = true;
  addText(state.delivered, text);
}

/** Later values replace earlier ones, kind by kind. */
export function learnUsage(state: StreamState, usage: Partial<Usage> | undefined): void {
  if (!usage) return;
  state.usage = { ...state.usage, ...usage };
  if ((usage.reasoning_tokens ?? 0) > 0) state.reasons = true;
}

/** Notes what an event means for the state. */
export function note(state: StreamState, event: ChatEvent): void {
  switch (event.type) {
    case 'text':
    case 'refusal':
      return deliver(state, event.text);
    case 'thinking':
      state.reasons = true;
      return deliver(state, event.text);
    case 'tool_arguments':
      return deliver(state, event.json);
    case 'tool_call':
      state.has_content = true;
      return addText(state.delivered, event.name); // as in whole answers: a call without arguments is output, too
    case 'redacted_thinking':
      state.reasons = true;
      state.has_content = true;
      return;
    case 'signature':
      state.reasons = true;
      return;
    case 'ending':
      state.is_ending = true;
      return;
    case 'usage':
      return learnUsage(state, event.usage);
    case 'start':
      state.has_begun = true;
      state.upstream_id ??= event.id;
      return;
    case 'end':
      state.is_complete = true;
      return;
    case 'error':
      return fail(state, event.message, event.error_type);
    default:
  }
}
