import { useQueryClient } from '@tanstack/react-query';
import { useCallback, useEffect, useRef } from 'react';
import type { ChatView } from '../../../../src/dashboard/views/activity.ts';
import { api } from '../../api.ts';
import { usePlace } from '../../session.tsx';
import { renewBalance } from '../../ui/balance.ts';
import { streamChat } from './chat-stream.ts';
import { answerError, empty_answer, withDelta, type Settings } from './conversation.ts';
import { styles } from './styles/styles.ts';
import type { Bill, ModelAnswer, Turn } from './turn.ts';

type Question = {
  /** The id of the answer. */
  id: string;
  model: string;
  turns: readonly Turn[];
  settings: Settings;
  /** Called with the answer as far as it is, several times a second. */
  show: (answer: ModelAnswer) => void;
};

/** Tokens come faster than anybody reads, and each look at an answer costs as much as it is long. */
const shown_every_ms = 60;

/** Calls of chat models that are being answered. */
export function useAnswers() {
  const { base, account } = usePlace();
  const queries = useQueryClient();
  const running = useRef(new Map<string, AbortController>());
  /** Streams as they came, by the answer: for looking at, and saved nowhere. */
  const streams = useRef(new Map<string, string[]>());

  const stop = useCallback(() => {
    for (const controller of running.current.values()) controller.abort();
  }, []);
  useEffect(() => stop, [stop]);

  const ask = useCallback(
    async ({ id, model, turns, settings, show }: Question) => {
      const controller = new AbortController();
      const events: string[] = [];
      running.current.set(id, controller);
      streams.current.set(id, events);
      let answer = empty_answer;
      const [showSoon, showNow] = unhurried(() => show(answer));
      const { style } = settings;
      try {
        await streamChat({
          path: `${base}/chat/${style}`,
          style,
          body: styles[style].bodyOf(model, turns, settings),
          signal: controller.signal,
          onBegin: (request_id) => (answer = { ...answer, request_id }),
          onEvent: (raw, { delta = {}, finish }) => {
            events.push(raw);
            answer = { ...withDelta(answer, delta), finish: finish ?? answer.finish };
            showSoon();
          },
        });
        answer = { ...answer, state: 'done' };
      } catch (error) {
        const is_stopped = controller.signal.aborted;
        answer = {
          ...answer,
          state: is_stopped ? 'stopped' : 'failed',
          error: is_stopped ? undefined : answerError(error),
        };
      } finally {
        running.current.delete(id);
      }
      showNow();
      if (answer.request_id !== undefined) {
        const bill = await billOf(base, answer.request_id);
        if (bill) show({ ...answer, bill });
      }
      renewBalance(queries, account.id);
    },
    [base, account.id, queries],
  );
  const streamOf = useCallback((id: string): readonly string[] => streams.current.get(id) ?? none, []);
  return { ask, stop, streamOf };
}

const none: readonly string[] = [];

/** Two functions that call `show`: once in a while, and at once for the last time. */
function unhurried(show: () => void): [soon: () => void, now: () => void] {
  let timer: number | undefined;
  const now = () => {
    window.clearTimeout(timer);
    timer = undefined;
    show();
  };
  return [() => (timer ??= window.setTimeout(now, shown_every_ms)), now];
}

/** The record of a call is written a moment behind its answer. */
async function billOf(base: string, request_id: string): Promise<Bill | undefined> {
  for (let tries_left = 8; tries_left > 0; tries_left -= 1) {
    await new Promise((resolve) => setTimeout(resolve, 300));
    const record = await api.get<ChatView>(`${base}/chats/${request_id}`).catch(() => undefined);
    if (record) {
      const { input_tokens, output_tokens, cost, total_ms } = record;
      return { input_tokens, output_tokens, cost, total_ms };
    }
  }
  return undefined;
}
