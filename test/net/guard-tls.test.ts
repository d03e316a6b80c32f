import { createServer } from 'node:https';
import { createServer as createTcp, type AddressInfo } from 'node:net';
import { getCACertificates, setDefaultCACertificates, type TLSSocket } from 'node:tls';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openGuard, type GuardError } from '../../src/net/guard.ts';
import { makeCertificate } from '../helpers/certificate.ts';

/** The connection goes to an address that was judged, TLS to the name that was asked for. */

const trusted = makeCertificate('receiver.example');
const unknown = makeCertificate('stranger.example');
const server_names: (string | false | null)[] = [];
const server = createServer(trusted, (request, response) => {
  server_names.push((request.socket as TLSSocket & { servername: string | false | null }).servername);
  if (request.url === '/hook') return response.writeHead(200, { 'x-host': request.headers.host ?? '' }).end();
  response.writeHead(302, { location: request.url?.slice(1) }).end();
});
const stranger = createServer(unknown, (_, response) => response.end());
const before = getCACertificates('default');
const guard = openGuard({ resolve: async () => ['127.0.0.1'] });

beforeAll(async () => {
  setDefaultCACertificates([trusted.cert]);
  for (const one of [server, stranger]) await new Promise<void>((resolve) => one.listen(0, '127.0.0.1', resolve));
});
afterAll(() => {
  setDefaultCACertificates(before);
  server.close();
  stranger.close();
});

/** So that nothing ends by it. */
const longer_than_the_test_ms = 3_600_000;
const portOf = (one: typeof server) => (one.address() as AddressInfo).port;
const send = (host: string, port = portOf(server), connect_timeout_ms = 60_000) =>
  guard.send(`https://${host}:${port}/hook`, {
    method: 'POST',
    headers: {},
    body: Buffer.from('{}'),
    rules: { allow: ['127.0.0.1/32'], allow_private: false },
    connect_timeout_ms,
    timeout_ms: longer_than_the_test_ms,
    answer_bytes_max: 1_000,
  });

test.each(['receiver.example', 'receiver.example.'])(
  'the host %s is addressed by its name and must prove it',
  async (host) => {
    server_names.length = 0;
    const { status, headers } = await send(host);
    expect({ status, host: headers['x-host'] }).toEqual({ status: 200, host: `${host}:${portOf(server)}` });
    expect(server_names).toEqual(['receiver.example']);
  },
);

test('a download that began with https never continues without it', async () => {
  const download = (next: string) =>
    guard.download(`https://receiver.example:${portOf(server)}/${next}`, {
      rules: { allow: ['127.0.0.1/32'], allow_private: false },
      connect_timeout_ms: 60_000,
      timeout_ms: 60_000,
      idle_timeout_ms: 60_000,
      size_bytes_max: 1_000,
      redirects_max: 3,
    });
  expect((await download('/hook')).bytes).toHaveLength(0);
  await expect(download('http://receiver.example/hook')).rejects.toMatchObject({ code: 'protocol' });
});

test.each([
  ['a certificate of another name', 'other.example', server],
  ['no certificate for the number itself', '127.0.0.1', server],
  ['an authority that nobody knows', 'stranger.example', stranger],
])('a server with %s is refused as a TLS error and gets nothing', async (_, host, one) => {
  server_names.length = 0;
  await expect(send(host, portOf(one))).rejects.toMatchObject({ code: 'tls' } satisfies Partial<GuardError>);
  expect(server_names).toEqual([]);
});

test('a host that connects and never begins TLS has the time to connect and no more', async () => {
  const silent = createTcp();
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
  const { port } = silent.address() as AddressInfo;
  await expect(send('receiver.example', port, 2_000)).rejects.toMatchObject({ code: 'timeout' });
  silent.close();
});
