import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { createServer, type Server } from 'node:net';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { AddressRules } from '../../src/net/address.ts';
import { GuardError, openGuard, type Guard } from '../../src/net/guard.ts';
import { systemResolve } from '../../src/net/resolve.ts';
import { startDns, type DnsServer } from '../helpers/dns.ts';

/** Nothing leaves to an address that is not public: neither to a listener of ours nor to anywhere else. */

let dns: DnsServer;
let guard: Guard;
let listeners: Server[];
let port: number;
let arrived = 0;
let dialled = 0;
const onDial = () => (dialled += 1);

beforeAll(async () => {
  dns = await startDns();
  guard = openGuard({ resolve: systemResolve({ servers: [dns.address], hosts_file: '/nowhere' }) });
  const first = await listen('127.0.0.1', 0);
  const address = first.address();
  port = typeof address === 'object' && address ? address.port : 0;
  const others = await Promise.all(['127.0.0.2', '127.1.2.3', '::1'].map((host) => listen(host, port)));
  listeners = [first, ...others];
  subscribe('net.client.socket', onDial);
});
beforeEach(() => {
  arrived = 0;
  dialled = 0;
});
afterAll(async () => {
  unsubscribe('net.client.socket', onDial);
  for (const server of listeners) server.close();
  await dns.stop();
});

async function listen(host: string, chosen_port: number): Promise<Server> {
  const server = createServer((socket) => {
    arrived += 1;
    socket.destroy();
  });
  await new Promise<void>((resolve) => server.listen(chosen_port, host, resolve));
  return server;
}

const rules: AddressRules = { allow: [], allow_private: false };
const limits = { connect_timeout_ms: 60_000, timeout_ms: 60_000 };

async function failureOf(url: string, way: 'send' | 'download', allowed = rules): Promise<GuardError> {
  const options = { ...limits, rules: allowed };
  const work =
    way === 'send'
      ? guard.send(url, { ...options, method: 'POST', headers: {}, body: Buffer.from('{}'), answer_bytes_max: 1_000 })
      : guard.download(url, { ...options, idle_timeout_ms: 60_000, size_bytes_max: 1_000, redirects_max: 3 });
  const error: unknown = await work.then(
    () => new Error(`${url} was answered`),
    (reason: unknown) => reason,
  );
  if (error instanceof GuardError) return error;
  throw error;
}

const hosts = [
  // loopback in every spelling that a URL parser takes
  '127.0.0.1',
  '127.0.0.2',
  '127.1.2.3',
  '127.1',
  '127.0.1',
  '127.0.0.1.',
  '0177.0.0.1',
  '0x7f.0.0.1',
  '0x7f.1',
  '0x7f000001',
  '2130706433',
  '017700000001',
  '①②⑦.⓪.⓪.①',
  '127。0。0。1',
  '%31%32%37.0.0.1',
  'localhost',
  'LOCALHOST',
  'localhost.',
  'a.localhost',
  '[::1]',
  '[0:0:0:0:0:0:0:1]',
  '[0000::0001]',
  '[::127.0.0.1]',
  '[::7f00:1]',
  '[::ffff:127.0.0.1]',
  '[::ffff:7f00:1]',
  '[0:0:0:0:0:ffff:127.0.0.1]',
  '[::ffff:0:127.0.0.1]',
  '[64:ff9b::127.0.0.1]',
  '[64:ff9b:1::7f00:1]',
  '[2002:7f00:1::]',
  '[2001:0:7f00:1::]',
  // any address, this network
  '0.0.0.0',
  '0',
  '0.1.2.3',
  '[::]',
  '[::ffff:0.0.0.0]',
  // private networks, carrier-grade NAT, unique local
  '10.0.0.1',
  '10.255.255.255',
  '172.16.0.1',
  '172.31.255.254',
  '192.168.0.1',
  '192.168.1.255',
  '100.64.0.1',
  '100.127.255.254',
  '[fc00::1]',
  '[fd12:3456:789a::1]',
  '[::ffff:10.0.0.1]',
  '[::ffff:a00:1]',
  '167772161',
  // link-local and the clouds' metadata
  '169.254.169.254',
  '169.254.0.1',
  '2852039166',
  '0xa9fea9fe',
  '0251.0376.0251.0376',
  '[::ffff:169.254.169.254]',
  '[::ffff:a9fe:a9fe]',
  '[64:ff9b::a9fe:a9fe]',
  '[fe80::1]',
  '[fd00:ec2::254]',
  '100.100.100.200',
  '168.63.129.16',
  '[::ffff:168.63.129.16]',
  '192.0.0.192',
  // documentation, benchmarks, multicast, broadcast, reserved
  '192.0.2.1',
  '198.51.100.1',
  '203.0.113.1',
  '198.18.0.1',
  '224.0.0.1',
  '239.255.255.255',
  '240.0.0.1',
  '255.255.255.255',
  '192.88.99.1',
  '[ff02::1]',
  '[2001:db8::1]',
  '[3fff::1]',
  '[100::1]',
  '[fec0::1]',
  // IPv4 in the forms of IPv6 that translators and tunnels take apart, and what nobody has been given
  '[::7f00:1]',
  '[::10.0.0.1]',
  '[64:ff9b:1::a00:1]',
  '[2002:a00:1::1]',
  '[4000::1]',
  '[5f00::1]',
  // metadata of further clouds
  '169.254.170.2',
  '[fd20:ce::254]',
  '[fd00:c1::a9fe:a9fe]',
  '[fd00:42::42]',
  '[fe80::a9fe:a9fe]',
];

test('the table of refused addresses has at least 60 rows', () => {
  expect(new Set(hosts).size).toBeGreaterThanOrEqual(60);
});

test.each(hosts)('the address %s is refused, and no socket is opened', async (host) => {
  for (const way of ['send', 'download'] as const) {
    for (const scheme of ['http', 'https']) {
      const { code } = await failureOf(`${scheme}://${host}:${port}/`, way);
      expect(code).toBe('address_refused');
    }
  }
  expect({ arrived, dialled }).toEqual({ arrived: 0, dialled: 0 });
});

test.each([
  ['private', ['10.1.2.3']],
  ['loopback', ['127.0.0.1']],
  ['metadata', ['169.254.169.254']],
  ['loopback by IPv6', ['::1']],
  ['mapped by IPv6', ['0:0:0:0:0:ffff:7f00:1']],
  ['mixed, the public one first', ['93.184.215.14', '127.0.0.1']],
  ['mixed, the private one first', ['127.0.0.1', '93.184.215.14']],
  ['mixed over both kinds', ['93.184.215.14', '::1']],
])('a name that resolves to an address that is %s is refused', async (_, addresses) => {
  dns.answer('evil.example', addresses);
  for (const way of ['send', 'download'] as const) {
    expect((await failureOf(`http://evil.example:${port}/`, way)).code).toBe('address_refused');
    expect((await failureOf(`http://EVIL.example.:${port}/`, way)).code).toBe('address_refused');
  }
  expect({ arrived, dialled }).toEqual({ arrived: 0, dialled: 0 });
});

test('a name is resolved once per attempt, and the checked address is the one that is used (rebinding)', async () => {
  const lenient = { allow: ['127.9.9.9/32'], allow_private: false }; // an address that is judged good
  dns.answer('rebind.example', (count) => (count === 1 ? ['127.9.9.9'] : ['127.0.0.1']));
  const { code } = await failureOf(`http://rebind.example:${port}/`, 'send', lenient);
  expect(code).toBe('connect'); // nobody listens there
  expect(dns.queriesFor('rebind.example')).toBe(1);
  expect(arrived).toBe(0);
  expect((await failureOf(`http://rebind.example:${port}/`, 'send', lenient)).code).toBe('address_refused');
  expect(arrived).toBe(0);
});

test('a name without a public address is reported as a failure of the name and nothing else', async () => {
  expect((await failureOf('http://none.example/', 'send')).code).toBe('dns');
});

test('allow_private permits private and loopback addresses, and never link-local or metadata', async () => {
  const local = { allow: [], allow_private: true };
  expect((await failureOf(`http://127.0.0.1:${port}/`, 'send', local)).code).toBe('reset'); // our listener hangs up
  expect(arrived).toBe(1);
  for (const host of ['169.254.169.254', '[fe80::1]', '[fd00:ec2::254]', '100.100.100.200', '168.63.129.16', '0.0.0.0'])
    expect((await failureOf(`http://${host}:${port}/`, 'send', local)).code).toBe('address_refused');
  expect(arrived).toBe(1);
});

test('net.allow permits what it names and nothing else', async () => {
  const second = { allow: ['127.0.0.2/32'], allow_private: false };
  expect((await failureOf(`http://127.0.0.2:${port}/`, 'send', second)).code).toBe('reset');
  expect((await failureOf(`http://127.0.0.1:${port}/`, 'send', second)).code).toBe('address_refused');
  dns.answer('both.example', ['127.0.0.2', '127.0.0.1']);
  expect((await failureOf(`http://both.example:${port}/`, 'send', second)).code).toBe('address_refused');
  expect(arrived).toBe(1);
});

test('net.allow covers its addresses in the form of IPv6, and no others by a zone', async () => {
  const second = { allow: ['127.0.0.2/32', '::/0'], allow_private: false };
  expect((await failureOf(`http://[::ffff:127.0.0.2]:${port}/`, 'send', second)).code).toBe('reset');
  expect((await failureOf(`http://[::ffff:127.0.0.1]:${port}/`, 'send', second)).code).toBe('address_refused');
  expect({ arrived, dialled }).toEqual({ arrived: 1, dialled: 1 });
  for (const address of ['::1%lo', '2606:4700:4700::1111%eth0', 'localhost', '']) {
    const lying = openGuard({ resolve: async () => [address] });
    const options = { ...limits, rules: second, method: 'GET', headers: {}, answer_bytes_max: 1 } as const;
    await expect(lying.send('http://any.example/', options)).rejects.toMatchObject({ code: 'address_refused' });
  }
  expect({ arrived, dialled }).toEqual({ arrived: 1, dialled: 1 });
});

test('net.allow never permits metadata services or what is behind a translator', async () => {
  const wide = { allow: ['0.0.0.0/0', '::/0'], allow_private: true };
  for (const host of [
    '169.254.169.254',
    '100.100.100.200',
    '168.63.129.16',
    '192.0.0.192',
    '[fd00:ec2::254]',
    '[fe80::1]',
  ])
    expect((await failureOf(`http://${host}:${port}/`, 'send', wide)).code).toBe('address_refused');
  const translated = { allow: ['64:ff9b::/96', '2002::/16'], allow_private: false };
  for (const host of ['[64:ff9b::a9fe:a9fe]', '[64:ff9b::7f00:1]', '[2002:a00:1::]'])
    expect((await failureOf(`http://${host}:${port}/`, 'send', translated)).code).toBe('address_refused');
  expect({ arrived, dialled }).toEqual({ arrived: 0, dialled: 0 });
});

test('the connected address is checked, too: 0.0.0.0 may be permitted, but it leads to 127.0.0.1', async () => {
  const zero = { allow: ['0.0.0.0/8'], allow_private: false };
  const all = await listen('0.0.0.0', 0);
  const address = all.address();
  const bytes = new Promise<number>((resolve) => {
    all.once('connection', (socket) => socket.once('close', () => resolve(socket.bytesRead)));
  });
  dns.answer('zero.example', ['0.0.0.0']);
  const url = `http://zero.example:${typeof address === 'object' && address ? address.port : 0}/`;
  expect((await failureOf(url, 'send', zero)).code).toBe('address_refused');
  expect(await bytes).toBe(0);
  all.close();
});

test.each(['a number', 'a name'])('a download that is redirected to %s inside goes no further', async (kind) => {
  const first = { allow: ['127.0.0.9/32'], allow_private: false };
  const redirecting = createServer((socket) => {
    const host = kind === 'a name' ? 'inside.example' : '127.0.0.1';
    // Who answers before the request has come resets the connection.
    socket.once('data', () =>
      socket.end(`HTTP/1.1 302 Found\r\nlocation: http://${host}:${port}/\r\ncontent-length: 0\r\n\r\n`),
    );
  });
  await new Promise<void>((resolve) => redirecting.listen(0, '127.0.0.9', resolve));
  dns.answer('inside.example', ['127.0.0.1']);
  const address = redirecting.address();
  const url = `http://127.0.0.9:${typeof address === 'object' && address ? address.port : 0}/`;
  expect((await failureOf(url, 'download', first)).code).toBe('address_refused');
  expect({ arrived, dialled }).toEqual({ arrived: 0, dialled: 1 });
  redirecting.close();
});

test.each([
  'ftp://93.184.215.14/',
  'file:///etc/passwd',
  'gopher://127.0.0.1/',
  'http://user@93.184.215.14/',
  'http://user:password@93.184.215.14/',
  'http://93.184.215.14:22/',
  'http://93.184.215.14:6379@127.0.0.1/',
  'http://[fe80::1%25eth0]/',
  'http://',
  'no url',
  ' http://127.0.0.1/',
  'http://127.0.0.1\t/',
  '//127.0.0.1/',
])('the URL %s is refused as an address to send to', async (url) => {
  for (const way of ['send', 'download'] as const) expect((await failureOf(url, way)).code).toBe('address_refused');
  expect({ arrived, dialled }).toEqual({ arrived: 0, dialled: 0 });
});
