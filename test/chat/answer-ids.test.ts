import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { expectExactBooks } from '../helpers/app.ts';
import { begun, response, messageItem } from './responses-streams.ts';
import { completion, generated, hello, message, setStage, type Stage } from './setup.ts';
import { completionsStream, event, messagesStream } from './streams.ts';

/** Some upstreams number their answers anew: two with one id are merged by clients into one turn. */

let stage: Stage;

const more = `
  - id: acme/res
    kind: chat
    price: *price
    routes: [{ provider: oai, upstream_model: res-x, options: { responses: always } }]
`;

beforeAll(async () => {
  stage = await setStage({ more });
});
afterEach(() => expectExactBooks(stage.test.app));
afterAll(() => stage.stop());

const data = (value: object) => `data: ${JSON.stringify(value)}\n\n`;

/** Each upstream gives all its answers the same id. */
const upstreams = {
  oai: { name: 'gpt-x', id: 'chatcmpl-1', whole: completion('Hi'), stream: completionsStream(['Hi'], [10, 5]) },
  ant: { name: 'claude-x', id: 'msg_1', whole: message('Hi'), stream: messagesStream(['Hi']) },
  res: {
    name: 'res-x',
    id: 'resp_1',
    whole: response([messageItem('Hi')]),
    stream: [
      ...begun(),
      event({ type: 'response.output_text.delta', item_id: 'msg_1', output_index: 0, content_index: 0, delta: 'Hi' }),
      event({ type: 'response.completed', response: response([messageItem('Hi')]) }),
    ],
  },
  gem: {
    name: 'gemini-x',
    id: 'resp-1',
    whole: generated([{ text: 'Hi' }]),
    stream: [data(generated([{ text: 'Hi' }]))],
  },
} as const;

const callers = {
  completions: { path: 'chat/completions', prefix: 'chatcmpl-', body: { messages: hello } },
  messages: { path: 'messages', prefix: 'msg_', body: { messages: hello, max_tokens: 500 } },
  responses: { path: 'responses', prefix: 'resp_', body: { input: hello } },
} as const;

type Event = { id?: string; message?: { id: string }; response?: { id: string } };

/** Every id of the answer that a caller reads, each once. */
function idsIn(text: string, stream: boolean): unknown[] {
  if (!stream) return [(JSON.parse(text) as Event).id];
  const events = text
    .split('\n')
    .filter((line) => line.startsWith('data: {'))
    .map((line) => JSON.parse(line.slice(6)) as Event);
  const ids = events.map((each) => each.id ?? each.message?.id ?? each.response?.id).filter((id) => id !== undefined);
  return [...new Set(ids)];
}

const rows = (Object.keys(callers) as (keyof typeof callers)[]).flatMap((caller) =>
  (Object.keys(upstreams) as (keyof typeof upstreams)[]).flatMap((upstream) =>
    [false, true].map((stream) => ({ caller, upstream, stream })),
  ),
);

describe('an answer has an id of our own, and the record the upstream’s', () => {
  test.each(rows)('$caller from $upstream, stream: $stream', async ({ caller, upstream, stream }) => {
    const { name, id: upstream_id, whole, stream: parts } = upstreams[upstream];
    const { path, prefix, body } = callers[caller];
    const usage_option = stream && caller === 'completions' && { stream_options: { include_usage: true } };
    const seen: unknown[] = [];
    for (let turn = 0; turn < 2; turn++) {
      stage.upstream.script(name, stream ? { stream: [...parts] } : { json: whole });
      const request = { model: `acme/${upstream}`, stream, ...body, ...usage_option };
      const answer = await stage.client.call('POST', `/v1/${path}`, request);
      expect(answer.status, answer.text).toBe(200);
      const request_id = answer.headers.get('x-request-id');
      expect(idsIn(answer.text, stream)).toEqual([prefix + request_id]);
      seen.push(...idsIn(answer.text, stream));
      await stage.client.call('GET', `/v1/chat/${request_id}`); // waits for the record
      const [row] = await stage.test.app.db.query('select attempts from chat_calls where id = $1', [request_id]);
      expect(row).toEqual({ attempts: [expect.objectContaining({ outcome: 'answered', upstream_id })] });
    }
    expect(new Set(seen).size).toBe(2);
  });
});
