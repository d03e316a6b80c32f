import { afterAll, beforeAll, expect, it } from 'vitest';
import { expectExactBooks, startTestApp, type TestApp } from '../helpers/app.ts';
import { signInAs, type Someone } from './people.ts';
import type { Seen } from '../helpers/person.ts';
import { ownerOf } from '../../src/accounts/members.ts';

let test: TestApp;

beforeAll(async () => {
  test = await startTestApp({ worker: false });
});
afterAll(async () => {
  await expectExactBooks(test.app);
  await test.stop();
});

/** Lists show about 160 characters of a prompt, and cut its JSON: wherever that is, what stands there must survive it. */
const pieces = ['\\', '\\\\', '\\u12', '\\u1234', '\\n', '\n', '"', '\u0001', '\u0001\\', 'ą', '🙂', '\\"'];

it.each(pieces)('a long prompt with %j where lists cut it is shown from its beginning', async (piece) => {
  const { account_id, call } = await test.client();
  const prompts = Array.from({ length: 16 }, (_, i) => 'a'.repeat(148 + i) + piece.repeat(30));
  for (const prompt of prompts) {
    const { status } = await call('POST', '/v1/generate', { model: 'sandbox/image', input: { prompt } });
    expect(status).toBe(202);
  }
  const owner: Someone = await signInAs(test, await ownerOf(test.app.db, account_id, new Date()), account_id);
  const readNow = async (path: string): Promise<Seen> => {
    const seen = await owner.get(owner.base + path);
    return seen.status === 503 ? readNow(path) : seen; // a busy database
  };
  expect((await readNow('/home')).status).toBe(200);
  const listed = await readNow('/tasks?limit=50');
  expect(listed.status).toBe(200);
  const { data } = listed.json as { data: { prompt: string }[] };
  const shown = data.map(({ prompt }) => prompt).toReversed();
  expect(shown).toHaveLength(prompts.length);
  for (const [i, text] of shown.entries()) {
    expect(text).toMatch(/…$/);
    expect(prompts[i]?.startsWith(text.slice(0, -1)), JSON.stringify(text)).toBe(true);
    expect(text.length).toBeGreaterThan(120);
  }
});
