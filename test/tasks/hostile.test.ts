import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type Client, type TestApp } from '../helpers/app.ts';

/** Characters that PostgreSQL cannot store or compare must never become a 500. */
describe('characters that a database refuses', () => {
  let service: TestApp;
  let client: Client;

  beforeAll(async () => {
    service = await startTestApp({ worker: false });
    client = await service.client();
  });
  afterAll(() => service.stop());

  const generate = (more: object) =>
    client.call('POST', '/v1/generate', { model: 'sandbox/image', input: { prompt: 'x' }, ...more });

  it('are stored unchanged as NUL in a prompt and as a lone surrogate in metadata', async () => {
    const { status, json } = await generate({ input: { prompt: 'a\u0000\ud800b' }, metadata: { color: '\ud800' } });
    expect(status).toBe(202);
    expect((await client.call('GET', `/v1/tasks/${json.id}`)).json.metadata).toEqual({ color: '\ud800' });
  });

  it.each(['tasks', 'models', 'chat'])('are an unknown id as NUL in /v1/%s', async (path) => {
    expect((await client.call('GET', `/v1/${path}/a%00b`)).status).toBe(404);
    expect((await client.call('GET', `/v1/${path}/req_01m7z8np60e1rajsfk4dpye19va%00b`)).status).toBe(404);
  });

  it.each(['metadata[color]=red', 'metadata[color]=%00', 'metadata[%00]=x', 'model=%00', 'model=a%00b'])(
    'break no list of tasks by %s beside a task with a lone surrogate',
    async (query) => {
      await generate({ metadata: { color: '\ud800', size: 'big' } });
      expect(await client.call('GET', `/v1/tasks?${query}`)).toMatchObject({ status: 200, json: { data: [] } });
    },
  );
});
