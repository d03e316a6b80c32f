import { setTimeout as sleep } from 'node:timers/promises';

/** Calls of /v1, as programs make them. */
export type Work = {
  /** Runs a model to its end, whatever that is, and answers the id of the task. */
  run(key: string, model: string, input: Record<string, unknown>, webhook_url?: string): Promise<string>;
  /** Answers as soon as it has begun. */
  begin(key: string, model: string, input: Record<string, unknown>): Promise<string>;
  /** Answers the id of the call, also of one that fails. */
  chat(key: string, model: string, content: string): Promise<string>;
  /** All of them, two at a time. */
  together(calls: (() => Promise<unknown>)[]): Promise<void>;
  /** Returns the number of calls so far. */
  count(): number;
};

const at_once = 2;

export function makeWork(url: string): Work {
  let count = 0;
  const post = async (key: string, path: string, body: unknown) => {
    count++;
    const response = await fetch(url + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    return { status: response.status, id: response.headers.get('x-request-id') ?? '', text: await response.text() };
  };
  const generate = async (key: string, query: string, body: Record<string, unknown>): Promise<string> => {
    const { status, text } = await post(key, `/v1/generate${query}`, body);
    if (status >= 300) throw new Error(`/v1/generate was answered ${status}: ${text}`);
    return JSON.parse(text).id;
  };
  return {
    run: (key, model, input, webhook_url) =>
      generate(key, '?wait=60', { model, input, ...(webhook_url !== undefined && { webhook_url }) }),
    begin: async (key, model, input) => {
      const id = await generate(key, '', { model, input });
      await untilRunning(url, key, id);
      return id;
    },
    chat: async (key, model, content) =>
      (await post(key, '/v1/chat/completions', { model, messages: [{ role: 'user', content }] })).id,
    together: async (calls) => {
      const waiting = [...calls];
      const work = async () => {
        for (let call = waiting.shift(); call; call = waiting.shift()) await call();
      };
      await Promise.all(Array.from({ length: at_once }, work));
    },
    count: () => count,
  };
}

async function untilRunning(url: string, key: string, id: string): Promise<void> {
  for (;;) {
    const response = await fetch(`${url}/v1/tasks/${id}`, { headers: { authorization: `Bearer ${key}` } });
    const { status } = JSON.parse(await response.text());
    if (status !== 'queued') return;
    await sleep(100);
  }
}
