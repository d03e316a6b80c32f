import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer as createHttp, type RequestListener, type Server } from 'node:http';
import { createServer as createTcp, type AddressInfo, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { afterEach, beforeAll, afterAll, expect, test, vi } from 'vitest';
import { GuardError, openGuard, type DownloadOptions, type Guard, type SendOptions } from '../../src/net/guard.ts';
import { systemResolve } from '../../src/net/resolve.ts';
import { startDns, type DnsServer } from '../helpers/dns.ts';

let dns: DnsServer;
let guard: Guard;
const closers: (() => void)[] = [];

beforeAll(async () => {
  dns = await startDns();
  guard = openGuard({ resolve: systemResolve({ servers: [dns.address], hosts_file: '/nowhere' }) });
});
afterEach(() => {
  for (const close of closers.splice(0)) close();
});
afterAll(() => dns.stop());

const rules = { allow: ['127.0.0.0/8', '::1/128'], allow_private: false };
const sending: SendOptions = {
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: Buffer.from('{"a":"ł"}'),
  rules,
  connect_timeout_ms: 60_000,
  timeout_ms: 60_000,
  answer_bytes_max: 1_000,
};
/** For what is to end by its time, and would not end otherwise. */
const hasty: SendOptions = { ...sending, connect_timeout_ms: 1_000, timeout_ms: 2_000 };
const fetching: DownloadOptions = {
  rules,
  headers: { authorization: 'Bearer upstream' },
  connect_timeout_ms: 60_000,
  timeout_ms: 60_000,
  idle_timeout_ms: 60_000,
  size_bytes_max: 100_000,
  redirects_max: 3,
};

const longer_than_the_test_ms = 3_600_000;

async function serve(listener: RequestListener, host = '127.0.0.1'): Promise<string> {
  const server: Server = createHttp(listener);
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  closers.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://${host}:${(server.address() as AddressInfo).port}`;
}

/** A server that speaks for itself; resolves with its address. */
async function serveBytes(onConnection: (socket: Socket) => void): Promise<string> {
  const sockets = new Set<Socket>();
  const server = createTcp((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined).resume();
    onConnection(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closers.push(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function failureOf(work: Promise<unknown>): Promise<GuardError> {
  const error: unknown = await work.then(
    () => new Error('it was answered'),
    (reason: unknown) => reason,
  );
  if (error instanceof GuardError) return error;
  throw error;
}

test('a guarded request sends body and headers unchanged with the host of the URL, and returns status, headers and body', async () => {
  const seen: object[] = [];
  const url = await serve(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    seen.push({ method: request.method, url: request.url, ...request.headers, body: Buffer.concat(chunks).toString() });
    response.writeHead(418, { 'x-a': 'b' }).end('tea');
  });
  const { status, headers, answer } = await guard.send(`${url}/hook?x=1`, sending);
  expect({ status, a: headers['x-a'], answer: answer.toString() }).toEqual({ status: 418, a: 'b', answer: 'tea' });
  expect(seen).toEqual([
    {
      method: 'POST',
      url: '/hook?x=1',
      host: url.slice('http://'.length),
      connection: 'close',
      'content-type': 'application/json',
      'content-length': '10',
      body: '{"a":"ł"}',
    },
  ]);
});

test('a guarded request to a name keeps its Host header and connects to the checked address', async () => {
  let host: string | undefined;
  const url = new URL(
    await serve((request, response) => {
      host = request.headers.host;
      response.end();
    }),
  );
  dns.answer('receiver.example', ['127.0.0.1']);
  await guard.send(`http://receiver.example:${url.port}/`, sending);
  expect(host).toBe(`receiver.example:${url.port}`);
  expect(dns.queriesFor('receiver.example')).toBe(1);
});

test('a guarded request tries the next address when nobody listens at the first', async () => {
  const url = new URL(await serve((_, response) => response.end('here'), '127.0.0.3'));
  dns.answer('two.example', ['127.0.0.4', '127.0.0.3']);
  const { answer } = await guard.send(`http://two.example:${url.port}/`, sending);
  expect(answer.toString()).toBe('here');
});

test('names of the hosts file and localhost need no name server', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'medley-hosts-'));
  writeFileSync(`${folder}/hosts`, '# all of them\n127.0.0.1 one Two.Internal # last\n');
  closers.push(() => rmSync(folder, { recursive: true }));
  const resolve = systemResolve({ servers: [dns.address], hosts_file: `${folder}/hosts` });
  expect(await resolve('two.internal')).toEqual(['127.0.0.1']);
  expect(await resolve('localhost')).toEqual(['127.0.0.1', '::1']);
  await expect(resolve('last')).rejects.toThrow('ENOTFOUND');
});

test('a redirect of a POST is returned and not followed', async () => {
  let requests = 0;
  const url = await serve((_, response) => {
    requests += 1;
    response.writeHead(302, { location: '/elsewhere' }).end();
  });
  expect((await guard.send(url, sending)).status).toBe(302);
  expect(requests).toBe(1);
});

test('an endless response is read up to the limit, and its connection is closed', async () => {
  let closed: Promise<unknown> | undefined;
  const url = await serve((_, response) => {
    closed = new Promise((resolve) => response.once('close', resolve));
    response.writeHead(200);
    const more = () => {
      while (!response.destroyed && response.write('x'.repeat(4_096)));
    };
    response.on('drain', more);
    more();
  });
  const { answer } = await guard.send(url, sending);
  expect(answer).toHaveLength(1_000);
  await closed;
});

test.each<[string, (socket: Socket) => void, string]>([
  ['says nothing', () => undefined, 'timeout'],
  [
    'drips its head',
    (socket) => {
      socket.write('HTTP/1.1 200 OK\r\n');
      setInterval(() => socket.write('x-a: b\r\n'), 100).unref();
    },
    'timeout',
  ],
  [
    'says "continue" without end',
    (socket) => void socket.write('HTTP/1.1 100 Continue\r\n\r\n'.repeat(100)),
    'protocol',
  ],
  [
    'requires another protocol',
    (socket) => void socket.write('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n'),
    'protocol',
  ],
  [
    'has two lengths',
    (socket) => void socket.end('HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab'),
    'protocol',
  ],
  [
    'drips its body',
    (socket) => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n');
      setInterval(() => socket.write('x'), 100).unref();
    },
    'timeout',
  ],
  ['hangs up', (socket) => void socket.destroy(), 'reset'],
  ['is no HTTP', (socket) => void socket.write('SSH-2.0-OpenSSH_9.9\r\n'), 'protocol'],
  [
    'sends a head without end',
    (socket) => void socket.write(`HTTP/1.1 200 OK\r\n${'x-filler: 0123456789\r\n'.repeat(2_000)}`),
    'protocol',
  ],
  [
    'cuts its answer short',
    (socket) => void socket.end('HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nshort'),
    'reset',
  ],
])('a receiver that %s gets an error in time', async (_, onConnection, code) => {
  const url = await serveBytes(onConnection);
  expect((await failureOf(guard.send(url, code === 'timeout' ? hasty : sending))).code).toBe(code);
});

test('a name server that hangs fails its own request only, within the time to connect', async () => {
  dns.answer('hang.example', 'hang');
  const url = await serve((_, response) => response.end());
  const stop = new AbortController();
  let hanging = 50;
  const patient = { ...sending, signal: stop.signal };
  const ends = Array.from({ length: hanging }, () =>
    guard
      .send('http://hang.example/', patient)
      .catch(() => undefined)
      .finally(() => (hanging -= 1)),
  );
  await guard.send(url, sending);
  expect(hanging).toBe(50); // the answer came while they hung
  stop.abort();
  await Promise.all(ends);
  const begun_at_ms = performance.now();
  const failures = Array.from({ length: 50 }, () => failureOf(guard.send('http://hang.example/', hasty)));
  for (const { code } of await Promise.all(failures)) expect(code).toBe('timeout');
  expect(performance.now() - begun_at_ms).toBeLessThan(30_000); // all at once: one after the other takes 50 s
});

test('a name server that is silent on one address family costs a second', async () => {
  const url = new URL(await serve((_, response) => response.end()));
  for (const silent of ['A', 'AAAA'] as const) {
    dns.answer(`half-${silent.toLowerCase()}.example`, (_, kind) => (kind === silent ? 'hang' : ['127.0.0.1', '::1']));
  }
  const longer = { ...sending, connect_timeout_ms: 12_000 };
  expect((await guard.send(`http://half-aaaa.example:${url.port}/`, longer)).status).toBe(200); // c-ares tells after 14 s
  // Only ::1 is known, where nobody listens.
  expect((await failureOf(guard.send(`http://half-a.example:${url.port}/`, longer))).code).toBe('connect');
});

test('localhost is reached only at its permitted addresses', async () => {
  const url = new URL(await serve((_, response) => response.end()));
  for (const host of ['localhost', 'LOCALHOST.', 'a.localhost']) {
    const { status } = await guard.send(`http://${host}:${url.port}/`, {
      ...sending,
      rules: { allow: ['127.0.0.1/32'], allow_private: false },
    });
    expect(status).toBe(200);
  }
});

test('a request to a port where nobody listens fails to connect', async () => {
  expect((await failureOf(guard.send('http://127.0.0.1:9998/', sending))).code).toBe('connect');
});

test('a request by https to a server without TLS fails as a TLS error', async () => {
  const url = await serve((_, response) => response.end());
  expect((await failureOf(guard.send(url.replace('http:', 'https:'), sending))).code).toBe('tls');
});

test("a cancelled request fails with the caller's own reason", async () => {
  const url = await serveBytes(() => undefined);
  const stop = new AbortController();
  setTimeout(() => stop.abort(new Error('the engine is stopping')), 50);
  await expect(guard.send(url, { ...sending, signal: stop.signal })).rejects.toThrow('the engine is stopping');
  await expect(guard.send(url, { ...sending, signal: stop.signal })).rejects.toThrow('the engine is stopping');
});

test('downloads follow redirects, each is checked again, and a key stays with its origin', async () => {
  const keys: (string | undefined)[] = [];
  const other = await serve((request, response) => {
    keys.push(request.headers.authorization);
    response.writeHead(200, { 'content-type': 'image/png' }).end('bytes');
  }, '127.0.0.5');
  const url = await serve((request, response) => {
    keys.push(request.headers.authorization);
    response.writeHead(302, { location: request.url === '/a' ? '/b' : `${other}/c` }).end();
  });
  const { bytes, content_type } = await guard.download(`${url}/a`, fetching);
  expect({ bytes: bytes.toString(), content_type }).toEqual({ bytes: 'bytes', content_type: 'image/png' });
  expect(keys).toEqual(['Bearer upstream', 'Bearer upstream', undefined]);
});

test.each([
  ['http://10.0.0.1/', 'address_refused'],
  ['http://[::ffff:169.254.169.254]/latest/', 'address_refused'],
  ['file:///etc/passwd', 'address_refused'],
  ['http://user:pass@127.0.0.1/', 'address_refused'],
  ['/', 'protocol'], // round and round
])('a redirect to %s is refused', async (location, code) => {
  const url = await serve((_, response) => response.writeHead(307, { location }).end());
  expect((await failureOf(guard.download(url, fetching))).code).toBe(code);
});

test('downloads are limited in size, declared or not, and in time', async () => {
  const declared = await serve((_, response) => response.writeHead(200, { 'content-length': '100001' }).write('x'));
  expect((await failureOf(guard.download(declared, fetching))).code).toBe('too_large');
  const impatient = { ...fetching, idle_timeout_ms: 500, timeout_ms: longer_than_the_test_ms };
  const silent = await serve((_, response) => response.writeHead(200).write('x'));
  const mute = await serve((_, response) => response.writeHead(200).flushHeaders());
  for (const url of [silent, mute]) expect((await failureOf(guard.download(url, impatient))).code).toBe('timeout');
  const endless = await serve((_, response) => {
    response.writeHead(200);
    const more = () => {
      while (!response.destroyed && response.write('x'.repeat(4_096)));
    };
    response.on('drain', more);
    more();
  });
  expect((await failureOf(guard.download(endless, fetching))).code).toBe('too_large');
});

test('a file is saved at the speed at which it is read, and reports its outcome', async () => {
  const url = await serve((_, response) =>
    response.writeHead(200, { 'content-type': 'audio/wav' }).end('x'.repeat(90_000)),
  );
  const taken: number[] = [];
  const patient = { ...fetching, idle_timeout_ms: 2_500, size_bytes_max: 100_000 };
  const slow = new Writable({
    highWaterMark: 1,
    write: (chunk: Buffer, _encoding, done) => {
      taken.push(chunk.length);
      setTimeout(done, taken.length === 1 ? 2 * patient.idle_timeout_ms : 0); // the address is not to blame for it
    },
  });
  expect(await guard.save(url, slow, patient)).toEqual({ size_bytes: 90_000, content_type: 'audio/wav' });
  expect(taken.reduce((sum, bytes) => sum + bytes)).toBe(90_000);
  const full = new Writable({ write: (_chunk, _encoding, done) => done(new Error('no room left')) });
  await expect(guard.save(url, full, patient)).rejects.toThrow('no room left');
  for (const refused of ['http://10.0.0.1/', url]) {
    const file = new Writable({ write: (_chunk, _encoding, done) => done() });
    await expect(guard.save(refused, file, { ...patient, size_bytes_max: 80_000 })).rejects.toThrow(GuardError);
    expect(file).toMatchObject({ destroyed: true, writableFinished: false });
  }
});

test('a download that is cut or has another status is not a file', async () => {
  const cut = await serveBytes((socket) => void socket.end('HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nshort'));
  expect((await failureOf(guard.download(cut, fetching))).code).toBe('reset');
  const gone = await serve((_, response) => response.writeHead(404).end('no'));
  expect(await failureOf(guard.download(gone, fetching))).toMatchObject({ code: 'answer', status: 404 });
});

test('200 requests that hang delay no other', async () => {
  const sockets: Socket[] = [];
  const hanging = await serveBytes((socket) => void sockets.push(socket));
  const url = await serve((_, response) => response.end());
  const patient = { ...sending, connect_timeout_ms: 60_000, timeout_ms: 60_000 };
  let ended = 0;
  const all = Array.from({ length: 200 }, () => failureOf(guard.send(hanging, patient)).then(() => (ended += 1)));
  await vi.waitFor(() => expect(sockets).toHaveLength(200), { timeout: 120_000 });
  expect((await guard.send(url, patient)).status).toBe(200);
  expect(ended).toBe(0);
  for (const socket of sockets) socket.destroy();
  await Promise.all(all);
});
