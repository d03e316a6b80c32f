import { createHash, createHmac } from 'node:crypto';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Credentials } from '../../../src/catalog/model.ts';
import { openGuard } from '../../../src/net/guard.ts';
import { openUpstream } from '../../../src/providers/http/http.ts';
import { never } from '../upstreams.ts';

/** Clouds that look at the signature of what has arrived, as a media provider calls them. */
type Received = { method: string; path: string; headers: IncomingHttpHeaders; body: Buffer };

const sha = (data: string | Buffer) => createHash('sha256').update(data).digest('hex');
const mac = (key: string | Buffer, text: string) => createHmac('sha256', key).update(text).digest();

/** The signature that a cloud computes from what it has got. */
function expectedSignature({ method, path, headers, body }: Received, is_tencent: boolean): string {
  const { pathname, search } = new URL(path, 'http://h');
  const names = /SignedHeaders=([^,]+)/.exec(headers.authorization ?? '')?.[1] ?? '';
  const lines = names.split(';').map((name) => {
    const value = String(headers[name]).trim();
    return `${name}:${is_tencent ? value.toLowerCase() : value}\n`;
  });
  const canonical = [method, pathname, search.slice(1), lines.join(''), names, sha(body)].join('\n');
  const time = String(headers[is_tencent ? 'x-tc-timestamp' : 'x-date']);
  const scope = /Credential=[^/]+\/([^,]+)/.exec(headers.authorization ?? '')?.[1] ?? '';
  const text = [is_tencent ? 'TC3-HMAC-SHA256' : 'HMAC-SHA256', time, scope, sha(canonical)].join('\n');
  const first = is_tencent ? 'TC3shh' : 'shh';
  const key = scope.split('/').reduce<string | Buffer>((so_far, step) => mac(so_far, step), first);
  return createHmac('sha256', key).update(text).digest('hex');
}

const received: Received[] = [];
const server = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request
    .on('data', (chunk: Buffer) => chunks.push(chunk))
    .on('end', () => {
      const { method = '', url = '', headers } = request;
      received.push({ method, path: url, headers, body: Buffer.concat(chunks) });
      response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
    });
});
let origin = '';
beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => void server.close());

const tencent: Credentials = {
  kind: 'tencent',
  secret_id: 'AKID',
  secret_key: 'shh',
  service: 'aiart',
  version: '2022-12-29',
};
const volcengine: Credentials = {
  kind: 'volcengine',
  access_key_id: 'AKLT',
  secret_access_key: 'shh',
  region: 'cn-north-1',
  service: 'cv',
};

it.each([
  ['tencent', tencent, true],
  ['volcengine', volcengine, false],
])(
  'a cloud that checks the signature of %s takes submits with a body and polls without one',
  async (_, credentials, is_tencent) => {
    const config = { name: 'p', adapter: 'a', base_url: origin, allow_private: true, credentials };
    const upstream = openUpstream(config, openGuard());
    const headers = { 'X-TC-Action': 'SubmitTextToImageJob' };
    const query = { Action: 'CVProcess', Version: '2022-08-31' };
    await upstream.call({
      method: 'POST',
      path: '/',
      headers,
      query,
      json: { Prompt: 'Ein Rad, 自行车' },
      signal: never,
    });
    await upstream.call({ method: 'GET', path: '/jobs/1', signal: never });
    for (const request of received.splice(0)) {
      const signature = /Signature=([0-9a-f]{64})$/.exec(request.headers.authorization ?? '')?.[1];
      expect(signature).toBe(expectedSignature(request, is_tencent));
      expect(request.headers.authorization).not.toContain('shh');
    }
    await upstream.close();
  },
);
