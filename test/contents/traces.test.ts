import { expect, it } from 'vitest';
import type { ContentRules } from '../../src/accounts/content-rules.ts';
import { no_rules } from '../../src/accounts/key-rules.ts';
import { changeKeyRules } from '../../src/accounts/keys.ts';
import { startTestApp } from '../helpers/app.ts';
import { startCollector } from '../helpers/collector.ts';

const log_content: ContentRules = { keep_days: 7, redact: ['email'], patterns: [] };

/** Makes a call of a key that stores contents, and one of a key that does not; returns their spans and all bytes. */
async function traced(traces: boolean) {
  const collector = await startCollector();
  const yaml = `version: 1\ncontent_log: { traces: ${traces} }\n`;
  const test = await startTestApp({ yaml, worker: false, env: { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url } });
  try {
    const [logging, plain] = [await test.client(), await test.client()];
    await changeKeyRules(test.app.db, logging.key_id, { ...no_rules, log_content });
    test.app.authenticator.invalidate();
    const messages = [{ role: 'user', content: 'I am ada@example.com, quietly' }];
    for (const client of [logging, plain]) {
      const { status } = await client.call('POST', '/v1/chat/completions', { model: 'sandbox/chat', messages });
      expect(status).toBe(200);
    }
    const chats = () => collector.spans.filter(({ facts }) => facts['gen_ai.operation.name'] === 'chat');
    await expect.poll(() => chats().length).toBe(2);
    return {
      contents: chats().flatMap(({ facts }) => facts['gen_ai.input.messages'] ?? []),
      texts: collector.texts,
      spans: chats(),
    };
  } finally {
    await test.stop();
    await collector.stop();
  }
}

it('contents go into traces where the operator and the key of the call want that, redacted', async () => {
  const { contents, texts, spans } = await traced(true);
  expect(contents).toEqual([
    JSON.stringify([{ role: 'user', parts: [{ type: 'text', content: 'I am [email], quietly' }] }]),
  ]);
  const outputs = spans.map(({ facts }) => facts['gen_ai.output.messages']).filter((text) => text !== undefined);
  expect(outputs).toEqual([expect.stringContaining('"role":"assistant","parts":[{"type":"text"')]);
  expect(texts.join('')).not.toContain('ada@example.com');
});

it('no content goes into traces unless the operator says so', async () => {
  const { contents, texts } = await traced(false);
  expect(contents).toEqual([]);
  expect(texts.join('')).not.toContain('quietly');
});
