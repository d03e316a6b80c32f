import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { JsonObject } from '../../../src/catalog/model.ts';
import { openGuard } from '../../../src/net/guard.ts';
import { gemini } from '../../../src/providers/adapters/gemini/adapter.ts';
import { startProxy } from '../imitations/proxy.ts';
import { callOf, textOf } from '../upstreams.ts';

/** Google's STS and its service of short-lived credentials, another identity provider, and Vertex AI. */
type Seen = { path: string; headers: IncomingHttpHeaders; body: string };
const seen: Seen[] = [];
let refusals: Record<string, number> = {};
let lifetime_s = 3_600;
const server = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request
    .on('data', (chunk: Buffer) => chunks.push(chunk))
    .on('end', () => {
      const path = request.url ?? '';
      seen.push({ path, headers: request.headers, body: Buffer.concat(chunks).toString() });
      const status = refusals[path] ?? 200;
      response.writeHead(status, { 'content-type': 'application/json' });
      response.end(
        JSON.stringify(status === 200 ? answerTo(path) : { error: 'invalid_grant', error_description: 'secret' }),
      );
    });
});

function answerTo(path: string): object {
  if (path === '/sts') return { access_token: 'federated', token_type: 'Bearer', expires_in: lifetime_s };
  if (path === '/oidc') return { id: { none: 1 }, value: 'from-url' };
  if (path.endsWith(':generateAccessToken')) {
    return { accessToken: 'of-the-account', expireTime: new Date(Date.now() + lifetime_s * 1000).toISOString() };
  }
  return { hello: 1 };
}

let origin = '';
const folder = mkdtempSync(join(tmpdir(), 'federation-'));
const file = join(folder, 'token');
beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
beforeEach(() => {
  seen.length = 0;
  refusals = {};
  lifetime_s = 3_600;
  writeFileSync(file, 'first\n');
});
afterAll(() => {
  server.close();
  rmSync(folder, { recursive: true });
});

const audience = '//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/pool/providers/github';
const account = (more: JsonObject = {}) => ({
  type: 'external_account',
  audience,
  subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
  token_url: `${origin}/sts`,
  credential_source: { file },
  ...more,
});

function open(external_account: string, proxy?: string) {
  return gemini.openChat(
    {
      name: 'p',
      adapter: 'gemini',
      base_url: `${origin}/v1/projects/p/locations/l/publishers/google`,
      allow_private: true,
      credentials: { kind: 'google', external_account, scope: 'cloud' },
      ...(proxy !== undefined && { proxy }),
    },
    { guard: openGuard() },
  );
}
const ask = (external: object, proxy?: string) =>
  textOf(open(JSON.stringify(external), proxy), callOf('gemini', { model: 'gemini-3.1-pro' }));
const formOf = (path: string) =>
  Object.fromEntries(new URLSearchParams(seen.findLast((each) => each.path === path)?.body ?? ''));

describe('workload identity federation', () => {
  it('exchanges the token of another identity provider at the STS', async () => {
    expect(await ask(account())).toBe('{"hello":1}');
    expect(formOf('/sts')).toEqual({
      grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
      audience,
      scope: 'cloud',
      requested_token_type: 'urn:ietf:params:oauth:token-type:access_token',
      subject_token: 'first',
      subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
    });
    expect(seen.at(-1)).toMatchObject({
      path: '/v1/projects/p/locations/l/publishers/google/models/gemini-3.1-pro:generateContent',
      headers: { authorization: 'Bearer federated' },
    });
  });

  it('becomes a service account where the file says so, and asks once for many requests', async () => {
    const path = '/v1/projects/-/serviceAccounts/a@b.iam.gserviceaccount.com:generateAccessToken';
    const more = {
      service_account_impersonation_url: origin + path,
      service_account_impersonation: { token_lifetime_seconds: 900 },
    };
    const provider = open(JSON.stringify(account(more)));
    const call = callOf('gemini', { model: 'gemini-3.1-pro' });
    await Promise.all([1, 2, 3].map(() => textOf(provider, call)));
    expect(formOf('/sts')).toMatchObject({ scope: 'https://www.googleapis.com/auth/cloud-platform' });
    const requests = seen.filter((each) => each.path === path);
    expect(requests).toHaveLength(1);
    expect(requests[0]?.headers.authorization).toBe('Bearer federated');
    expect(JSON.parse(requests[0]?.body ?? '')).toEqual({ scope: ['cloud'], lifetime: '900s' });
    expect(seen.at(-1)?.headers.authorization).toBe('Bearer of-the-account');
  });

  it('reads the other token anew when its own ends, from a file, from JSON or from an address', async () => {
    lifetime_s = 30; // less than what is kept in reserve
    const provider = open(JSON.stringify(account()));
    const call = callOf('gemini', { model: 'gemini-3.1-pro' });
    await textOf(provider, call);
    writeFileSync(file, 'second');
    await textOf(provider, call);
    expect(formOf('/sts')).toMatchObject({ subject_token: 'second' });
    writeFileSync(file, '{"id_token": "in-json"}');
    const format = { type: 'json', subject_token_field_name: 'id_token' };
    await ask(account({ credential_source: { file, format } }));
    expect(formOf('/sts')).toMatchObject({ subject_token: 'in-json' });
    const source = {
      url: `${origin}/oidc`,
      headers: { Metadata: 'True' },
      format: { ...format, subject_token_field_name: 'value' },
    };
    await ask(account({ credential_source: source }));
    expect(formOf('/sts')).toMatchObject({ subject_token: 'from-url' });
    expect(seen.find(({ path }) => path === '/oidc')?.headers).toMatchObject({ metadata: 'True' });
  });

  it('goes by the proxy of its provider', async () => {
    const proxy = await startProxy();
    await ask(account(), `http://${proxy.host}`);
    expect(proxy.seen.map(({ line }) => line)).toEqual([`${origin}/sts`, expect.stringContaining(':generateContent')]);
    await proxy.stop();
  });

  it.each<[string, () => object, string]>([
    ['an empty object', () => ({}), 'rejected_credentials'],
    ['a service account', () => ({ type: 'service_account' }), 'rejected_credentials'],
    ['an address that is none', () => account({ token_url: 'file:///etc/passwd' }), 'rejected_credentials'],
    [
      'a source that is a program',
      () => account({ credential_source: { executable: { command: 'x' } } }),
      'rejected_credentials',
    ],
    [
      'JSON without its field',
      () => account({ credential_source: { file, format: { type: 'json' } } }),
      'rejected_credentials',
    ],
    ['a file that is gone', () => account({ credential_source: { file: join(folder, 'gone') } }), 'unavailable'],
    [
      'a field that is not there',
      () => account({ credential_source: { file, format: { type: 'json', subject_token_field_name: 'x' } } }),
      'rejected_credentials',
    ],
  ])('leaves the request unsent with %s', async (_, external, reason) => {
    const error = await ask(external()).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ name: 'NotStarted', reason });
    expect(seen).toEqual([]);
  });

  it.each([
    [400, 'rejected_credentials'],
    [429, 'unavailable'],
    [503, 'unavailable'],
  ])('leaves the request unsent if the STS answers %i, without its words', async (status, reason) => {
    refusals = { '/sts': status };
    const error = await ask(account()).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ name: 'NotStarted', reason, message: expect.not.stringContaining('secret') });
    expect(seen.map(({ path }) => path)).toEqual(['/sts']);
  });
});
