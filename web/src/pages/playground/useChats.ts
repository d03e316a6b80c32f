import { useQueryClient } from '@tanstack/react-query';
import { useCallback, useEffect, useRef, useState } from 'react';
import type { ChatView } from '../../../../src/dashboard/views/activity.ts';
import { api, Failure } from '../../api.ts';
import { usePlace } from '../../session.tsx';
import type { Attachment } from './attachments.ts';
import { streamChat } from './chat-stream.ts';
import {
  nextTurn,
  empty_answer,
  withDelta,
  type Bill,
  type ModelAnswer,
  type Settings,
  type Turn,
} from './conversation.ts';
import { styles } from './styles/styles.ts';

type Conversations = Readonly<Record<string, Turn[]>>;

const none: Turn[] = [];

/** Conversations with several models at once, each by its id. */
export function useChats() {
  const { base, account } = usePlace();
  const queries = useQueryClient();
  const [turns, setTurns] = useState<Conversations>({});
  const running = useRef(new Map<string, AbortController>());
  const change = useCallback((model: string, make: (answer: ModelAnswer) => ModelAnswer) => {
    setTurns((all) => {
      const own = all[model] ?? none;
      const last = own.at(-1);
      return last?.role === 'assistant' ? { ...all, [model]: [...own.slice(0, -1), make(last)] } : all;
    });
  }, []);
  const stop = useCallback(() => {
    for (const controller of running.current.values()) controller.abort();
  }, []);
  useEffect(() => stop, [stop]);

  const ask = async (model: string, new_message: { text: string; files: Attachment[] }, settings: Settings) => {
    const before = turns[model] ?? none;
    const sent = [...before, nextTurn(before, new_message.text, new_message.files)];
    setTurns((all) => ({ ...all, [model]: [...sent, empty_answer] }));
    const controller = new AbortController();
    running.current.set(model, controller);
    let request_id: string | undefined;
    const { style } = settings;
    try {
      await streamChat({
        path: `${base}/chat/${style}`,
        style,
        body: styles[style].bodyOf(model, sent, settings),
        signal: controller.signal,
        onBegin: (id) => (request_id = id),
        onEvent: (raw, { delta = {}, finish }) =>
          change(model, (answer) => ({
            ...withDelta(answer, delta),
            finish: finish ?? answer.finish,
            events: [...answer.events, raw],
          })),
      });
      change(model, (answer) => ({ ...answer, state: 'done', request_id }));
    } catch (error) {
      const cause = error instanceof Error ? error : new Error(String(error));
      const stopped = controller.signal.aborted;
      const failure =
        cause instanceof Failure ? cause : new Error('The service cannot be reached. It may be restarting.');
      change(model, (answer) => ({
        ...answer,
        state: stopped ? 'stopped' : 'failed',
        error: stopped ? undefined : failure,
        request_id,
      }));
    } finally {
      running.current.delete(model);
    }
    const bill = request_id === undefined ? undefined : await billOf(base, request_id);
    change(model, (answer) => (answer.request_id === request_id ? { ...answer, bill } : answer));
    void queries.invalidateQueries({ queryKey: [account.id, 'balance'] });
  };
  return { turns, ask, stop, clear: () => setTurns({}) };
}

/** The record of a call is written a moment behind its answer. */
async function billOf(base: string, request_id: string): Promise<Bill | undefined> {
  for (let tries_left = 8; tries_left > 0; tries_left -= 1) {
    await new Promise((resolve) => setTimeout(resolve, 300));
    const record = await api.get<ChatView>(`${base}/chats/${request_id}`).catch(() => undefined);
    if (record) return record;
  }
  return undefined;
}
