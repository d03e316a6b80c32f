import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { hello, setStage, type Stage } from './setup.ts';

let stage: Stage;

const more = `
  - id: acme/private
    kind: chat
    price: *price
    routes: [{ provider: private, upstream_model: llama }]
`;

beforeAll(async () => {
  stage = await setStage({ more, providers: '  private: { adapter: openai, base_url: "URL/v1" }\n' });
});
afterAll(() => stage.stop());

test('an upstream at a private address without allow_private is a warning in the log that names the setting', async () => {
  const warn = vi.spyOn(stage.test.app.log, 'warn');
  const { status } = await stage.client.call('POST', '/v1/chat/completions', {
    model: 'acme/private',
    messages: hello,
  });
  expect(status).toBe(502);
  expect(warn).toHaveBeenCalledWith(
    expect.objectContaining({ reason: expect.stringMatching(/^unreachable: .*set allow_private: true/) }),
    'a route gave no answer',
  );
});
