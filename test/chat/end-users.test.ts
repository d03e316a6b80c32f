import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { expectExactBooks } from '../helpers/app.ts';
import { completion, hello, message, setStage, type Stage } from './setup.ts';

/** Accounts share the upstream's customer, and nothing that it keeps by a name of theirs. */

let stage: Stage;

beforeAll(async () => {
  stage = await setStage();
});
afterEach(() => expectExactBooks(stage.test.app));
afterAll(() => stage.stop());

async function sent(path: string, body: object, member: (body: Record<string, unknown>) => unknown) {
  stage.upstream.script('gpt-x', { json: completion('Hi') });
  stage.upstream.script('claude-x', { json: message('Hi') });
  const clients = [await stage.test.client(), await stage.test.client()];
  const values: unknown[] = [];
  for (const client of [...clients, ...clients]) {
    const answer = await client.call('POST', path, { messages: hello, max_tokens: 10, ...body });
    expect(answer.status).toBe(200);
    values.push(member(stage.upstream.requests.at(-1)?.body ?? {}));
  }
  return values;
}

test.each([
  ['user', '/v1/chat/completions', { model: 'acme/oai', user: 'somebody' }, 'user'],
  ['prompt_cache_key', '/v1/chat/completions', { model: 'acme/oai', prompt_cache_key: 'somebody' }, 'prompt_cache_key'],
  [
    'safety_identifier',
    '/v1/chat/completions',
    { model: 'acme/oai', safety_identifier: 'somebody' },
    'safety_identifier',
  ],
  ['metadata.user_id', '/v1/messages', { model: 'acme/ant', metadata: { user_id: 'somebody' } }, 'metadata'],
  ['user, carried to messages', '/v1/chat/completions', { model: 'acme/ant', user: 'somebody' }, 'metadata'],
])('the same %s from two accounts becomes two stable values at the upstream', async (_, path, body, member) => {
  const [one, two, one_again, two_again] = await sent(path, body, (upstream_body) => upstream_body[member]);
  expect(one).toBeDefined();
  expect(JSON.stringify(one)).not.toContain('somebody');
  expect(one).not.toEqual(two);
  expect([one_again, two_again]).toEqual([one, two]);
});
