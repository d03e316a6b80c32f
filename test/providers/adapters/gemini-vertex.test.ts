import { generateKeyPairSync } from 'node:crypto';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { JsonObject } from '../../../src/catalog/model.ts';
import { openGuard } from '../../../src/net/guard.ts';
import { gemini } from '../../../src/providers/adapters/gemini/adapter.ts';
import { callOf, never, textOf } from '../upstreams.ts';

type Seen = { path: string; headers: IncomingHttpHeaders; body: JsonObject };
const seen: Seen[] = [];

/** Members of Vertex's CountTokensRequest (aiplatform v1, as @google/genai writes it, November 2026): others are refused. */
const counted_members = new Set(['model', 'contents', 'systemInstruction', 'tools', 'generationConfig', 'instances']);

const server = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request
    .on('data', (chunk: Buffer) => chunks.push(chunk))
    .on('end', () => {
      const body = JSON.parse(Buffer.concat(chunks).toString()) as JsonObject;
      const path = request.url ?? '';
      seen.push({ path, headers: request.headers, body });
      const unknown = Object.keys(body).find((name) => path.endsWith(':countTokens') && !counted_members.has(name));
      if (unknown !== undefined) {
        const message = `Invalid JSON payload received. Unknown name "${unknown}": Cannot find field.`;
        response.writeHead(400).end(JSON.stringify({ error: { code: 400, message, status: 'INVALID_ARGUMENT' } }));
        return;
      }
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(
        JSON.stringify(path.endsWith(':countTokens') ? { totalTokens: 31, totalBillableCharacters: 9 } : { ok: 1 }),
      );
    });
});

let origin = '';
beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => void server.close());

const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
const account = { client_email: 'a@b', private_key: privateKey.export({ type: 'pkcs8', format: 'pem' }) };
const place = '/v1/projects/my-project/locations/europe-west1/publishers/google';
const open = () =>
  gemini.openChat(
    {
      name: 'p',
      adapter: 'gemini',
      base_url: origin + place,
      allow_private: true,
      credentials: { kind: 'google', service_account: JSON.stringify(account), scope: 'cloud' },
    },
    { guard: openGuard() },
  );
const contents = [{ role: 'user', parts: [{ text: 'Hi' }] }];
const call = (more: Parameters<typeof callOf>[1] = {}) =>
  callOf('gemini', { model: 'gemini-3.1-pro', body: { contents }, ...more });

describe('Gemini on Vertex AI', () => {
  it.each([
    [false, ':generateContent'],
    [true, ':streamGenerateContent?alt=sse'],
  ])('is asked below its project and location; streamed: %s', async (stream, method) => {
    const provider = open();
    expect(await textOf(provider, call({ stream }))).toBe('{"ok":1}');
    expect(seen.at(-1)).toMatchObject({ path: `${place}/models/gemini-3.1-pro${method}`, body: { contents } });
    expect(seen.at(-1)?.headers.authorization).toMatch(/^Bearer [\w-]+\.[\w-]+\.[\w-]+$/);
    expect(seen.at(-1)?.headers).not.toHaveProperty('x-goog-api-key');
    await provider.close?.();
  });

  it('counts tokens in the form of Vertex, which knows no request within the request', async () => {
    const provider = open();
    const systemInstruction = { parts: [{ text: 'Be brief.' }] };
    const body = { contents, systemInstruction, toolConfig: {}, safetySettings: [] };
    expect(await provider.countTokens?.(call({ body }), never)).toBe(31);
    expect(seen.at(-1)).toMatchObject({
      path: `${place}/models/gemini-3.1-pro:countTokens`,
      body: { contents, systemInstruction },
    });
    await provider.close?.();
  });
});
