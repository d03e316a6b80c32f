import { createServer, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { afterEach, describe, expect, it } from 'vitest';
import type { ProviderConfig } from '../../../src/catalog/model.ts';
import { openGuard, type Guard } from '../../../src/net/guard.ts';
import { unreached } from '../../../src/providers/http/connections.ts';
import { openai } from '../../../src/providers/adapters/openai/adapter.ts';
import { makeCertificate } from '../../helpers/certificate.ts';
import { startProxy, type ImitatedProxy } from '../imitations/proxy.ts';
import { callOf, startRaw, textOf } from '../upstreams.ts';

const stops: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).toReversed()) await stop();
});

const authority = makeCertificate('upstream.example');
const client = makeCertificate('medley.example');

/** Names of the test's own world: `upstream.example` is public as far as its address goes, others are unknown. */
const addresses: Record<string, string[]> = {
  'upstream.example': ['127.0.0.1'],
  'proxy.example': ['127.0.0.1'],
  'inside.example': ['10.1.2.3'],
  'metadata.example': ['169.254.169.254'],
};
const guard: Guard = openGuard({
  resolve: async (name) => addresses[name] ?? Promise.reject(new Error('unknown name')),
});

type Upstream = { port: number; seen: { path: string; subject: string; headers: object }[] };

/** An upstream that answers with JSON; by TLS if `tls`, and then it may want a certificate. */
async function startUpstream({ tls = false, wants_certificate = false } = {}): Promise<Upstream> {
  const seen: Upstream['seen'] = [];
  const options = {
    ...authority,
    requestCert: wants_certificate,
    rejectUnauthorized: wants_certificate,
    ca: client.cert,
  };
  const server: Server = tls ? createTlsServer(options) : createServer();
  server.on('request', (request, response) => {
    const peer = tls ? (request.socket as TLSSocket).getPeerCertificate() : undefined;
    seen.push({ path: request.url ?? '', subject: String(peer?.subject?.CN ?? ''), headers: request.headers });
    response.writeHead(200, { 'content-type': 'application/json' }).end('{"hello":1}');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  stops.push(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return { port: (server.address() as AddressInfo).port, seen };
}

async function proxyWith(options: Parameters<typeof startProxy>[0] = {}): Promise<ImitatedProxy> {
  const proxy = await startProxy(options);
  stops.push(() => proxy.stop());
  return proxy;
}

function ask(config: Partial<ProviderConfig>, call = callOf('completions')): Promise<string> {
  const provider = openai.openChat({ name: 'p', adapter: 'openai', allow_private: true, ...config }, { guard });
  stops.push(async () => provider.close?.());
  return textOf(provider, call);
}

describe('a proxy of a provider', () => {
  it('gets CONNECT with the name of an upstream with TLS, and its own password, which goes no further', async () => {
    const [upstream, proxy] = [await startUpstream({ tls: true }), await proxyWith({ user: 'medley:s e&c:ret' })];
    const base_url = `https://upstream.example:${upstream.port}/v1`;
    const config = {
      base_url,
      proxy: `http://medley:${encodeURIComponent('s e&c:ret')}@${proxy.host}/`,
      tls: { ca: authority.cert },
    };
    expect(await ask(config)).toBe('{"hello":1}');
    expect(proxy.seen.map(({ line }) => line)).toEqual([`CONNECT upstream.example:${upstream.port}`]);
    expect(upstream.seen[0]?.path).toBe('/v1/chat/completions');
    expect(upstream.seen[0]?.headers).not.toHaveProperty('proxy-authorization');
  });

  it('gets the whole address of an upstream without TLS', async () => {
    const [upstream, proxy] = [await startUpstream(), await proxyWith({ user: 'medley:secret' })];
    const base_url = `http://upstream.example:${upstream.port}/v1`;
    expect(await ask({ base_url, proxy: `http://medley:secret@${proxy.host}` })).toBe('{"hello":1}');
    expect(proxy.seen.map(({ line }) => line)).toEqual([`${base_url}/chat/completions`]);
    expect(upstream.seen[0]?.headers).toMatchObject({ host: `upstream.example:${upstream.port}` });
  });

  it('may itself be spoken to by TLS', async () => {
    const proxy = await proxyWith({ certificate: makeCertificate('proxy.example') });
    const port = proxy.host.split(':')[1];
    const error = await ask({ base_url: 'https://upstream.example/v1', proxy: `https://proxy.example:${port}` }).catch(
      (reason: unknown) => reason,
    );
    expect(error).toMatchObject({ name: 'NotStarted', reason: 'unreachable' });
    expect(String(error)).toContain(
      'The proxy of this provider could not be used: The connection could not be secured',
    );
    expect(proxy.seen).toEqual([]);
  });

  it('resolves the name of the upstream where nobody else knows it', async () => {
    const [upstream, proxy] = [await startUpstream(), await proxyWith()];
    const base_url = `http://nowhere.example:${upstream.port}/v1`;
    expect(await ask({ base_url, proxy: `http://${proxy.host}`, allow_private: false })).toBe('{"hello":1}');
  });

  it.each([
    ['http://10.1.2.3/v1', 'http://PROXY', 'private, local'],
    ['http://inside.example/v1', 'http://PROXY', 'private, local or reserved'],
    ['http://upstream.example/v1', 'http://metadata.example:3128', 'The proxy of this provider'],
    ['http://upstream.example/v1', 'http://169.254.169.254:80', 'The proxy of this provider'],
  ])('is asked for nothing if %s by %s may not be dialled', async (base_url, address, problem) => {
    const proxy = await proxyWith();
    const is_about_target = address.includes('PROXY');
    const error = await ask({
      base_url,
      proxy: address.replace('PROXY', proxy.host),
      allow_private: !is_about_target,
    }).catch((reason: unknown) => reason);
    expect(error).toMatchObject({ name: 'NotStarted', reason: 'unreachable' });
    expect(String(error)).toContain(problem);
    expect(proxy.seen).toEqual([]);
  });

  it.each([
    [{ status: 403 }, 'unreachable', 'it answered 403'],
    [{ status: 502 }, 'unreachable', 'it answered 502'],
    [{ user: 'another:word' }, 'rejected_credentials', 'it answered 407'],
  ])(
    'that refuses (%j) leaves the request unsent, which is said without its password',
    async (options, reason, words) => {
      const proxy = await proxyWith(options);
      const config = { base_url: 'https://upstream.example/v1', proxy: `http://medley:s3cretpass@${proxy.host}` };
      const error = await ask(config).catch((thrown: unknown) => thrown);
      expect(error).toMatchObject({ name: 'NotStarted', reason });
      expect(String(error)).toContain(words);
      expect(String(error)).not.toContain('s3cretpass');
    },
  );

  it('that is gone, silent or no proxy leaves the request unsent', async () => {
    const gone = await startProxy();
    await gone.stop();
    const call = callOf('completions', {
      timeout_ms: { connect: 300, first_byte: 2_000, idle: 2_000, start: 2_000, total: 2_000 },
    });
    const config = { base_url: 'https://upstream.example/v1', proxy: `http://${gone.host}` };
    await expect(ask(config)).rejects.toMatchObject({ name: 'NotStarted', reason: 'unreachable' });
    const silent = await startRaw(() => undefined);
    stops.push(() => silent.stop());
    const proxy = silent.url;
    await expect(ask({ ...config, proxy }, call)).rejects.toMatchObject({ name: 'NotStarted', reason: 'timeout' });
  });

  it('is for that provider alone, and for its tokens', async () => {
    const [upstream, proxy] = [await startUpstream(), await proxyWith()];
    const base_url = `http://upstream.example:${upstream.port}/v1`;
    await ask({ base_url });
    expect(proxy.seen).toEqual([]);
    const credentials = {
      kind: 'oauth' as const,
      token_url: `http://upstream.example:${upstream.port}/token`,
      client_id: 'a',
      client_secret: 'b',
    };
    await ask({ base_url, proxy: `http://${proxy.host}`, credentials }).catch(() => undefined);
    expect(proxy.seen.map(({ line }) => line)).toEqual([credentials.token_url]);
  });

  it('is used for the files that the provider links to, which must have an address that may be dialled', async () => {
    const [upstream, proxy] = [await startUpstream(), await proxyWith()];
    const options = {
      rules: { allow: [], allow_private: true },
      connect_timeout_ms: 60_000,
      timeout_ms: 60_000,
      idle_timeout_ms: 60_000,
      size_bytes_max: 1_000,
      redirects_max: 0,
      dial_options: { proxy: `http://${proxy.host}` },
    };
    const url = `http://upstream.example:${upstream.port}/file`;
    expect(String((await guard.download(url, options)).bytes)).toBe('{"hello":1}');
    expect(proxy.seen.map(({ line }) => line)).toEqual([url]);
    const unknown = guard.download(`http://nowhere.example:${upstream.port}/`, options);
    await expect(unknown).rejects.toMatchObject({ code: 'dns' });
    const inside = guard.download('http://inside.example/', { ...options, rules: { allow: [], allow_private: false } });
    await expect(inside).rejects.toMatchObject({ code: 'address_refused' });
    expect(proxy.seen).toHaveLength(1);
  });
});

describe('a certificate of a provider', () => {
  it('is shown to an upstream that wants one, whose own is believed by the authority in the file', async () => {
    const upstream = await startUpstream({ tls: true, wants_certificate: true });
    const base_url = `https://upstream.example:${upstream.port}/v1`;
    expect(await ask({ base_url, tls: { cert: client.cert, key: client.key, ca: authority.cert } })).toBe(
      '{"hello":1}',
    );
    expect(upstream.seen.map(({ subject }) => subject)).toEqual(['medley.example']);
  });

  it('works behind a proxy, too', async () => {
    const [upstream, proxy] = [await startUpstream({ tls: true, wants_certificate: true }), await proxyWith()];
    const tls = { cert: client.cert, key: client.key, ca: authority.cert };
    const base_url = `https://upstream.example:${upstream.port}/v1`;
    expect(await ask({ base_url, tls, proxy: `http://${proxy.host}` })).toBe('{"hello":1}');
    expect(upstream.seen.map(({ subject }) => subject)).toEqual(['medley.example']);
  });

  it('that an upstream does not take, or that is missing, gets no answer', async () => {
    const upstream = await startUpstream({ tls: true, wants_certificate: true });
    const base_url = `https://upstream.example:${upstream.port}/v1`;
    for (const own of [{}, makeCertificate('somebody.example')])
      await expect(ask({ base_url, tls: { ...own, ca: authority.cert } })).rejects.toThrow(
        /other side closed|did not take the certificate/,
      );
    expect(upstream.seen).toEqual([]);
  });

  it.each(['ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED', 'ERR_SSL_TLSV1_ALERT_UNKNOWN_CA'])(
    'that is refused in words of TLS (%s) leaves the request unsent',
    (code) => {
      const error = Object.assign(new Error('alert'), { code });
      const refused = { name: 'NotStarted', reason: 'rejected_credentials' };
      expect(() => unreached(error)).toThrow(expect.objectContaining(refused));
    },
  );

  it('of an upstream is checked against another name if the file gives one', async () => {
    const upstream = await startUpstream({ tls: true });
    const base_url = `https://127.0.0.1:${upstream.port}/v1`;
    const tls = { ca: authority.cert };
    await expect(ask({ base_url, tls })).rejects.toMatchObject({ name: 'NotStarted', reason: 'unreachable' });
    expect(await ask({ base_url, tls: { ...tls, server_name: 'upstream.example' } })).toBe('{"hello":1}');
  });
});
