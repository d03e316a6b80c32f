import { afterAll, beforeAll, expect, it } from 'vitest';
import { startTestApp, type Answered, type TestApp } from '../helpers/app.ts';
import { limits } from '../helpers/catalog.ts';

/** Which addresses a caller may choose for webhooks, as far as the URL alone tells. */

const yaml = `version: 1\n${limits()}\n`;

let service: TestApp;
let open: TestApp; // with ranges that the operator allows
let local: TestApp; // for local development

beforeAll(async () => {
  service = await startTestApp({ yaml, worker: false });
  open = await service.beside({ yaml: `${yaml}net: { allow: ["10.1.0.0/16", "fd00::/8", "127.0.0.0/8"] }\n` });
  local = await service.beside({ yaml, env: { MEDLEY_ALLOW_PRIVATE: '1' } });
});
afterAll(async () => {
  await open.stop();
  await local.stop();
  await service.stop();
});

async function generate(webhook_url: unknown, at = service): Promise<Answered> {
  const client = await at.client();
  return client.call('POST', '/v1/generate', { model: 'sandbox/image', input: { prompt: 'x' }, webhook_url });
}

async function expectAllowed(urls: readonly unknown[], at = service): Promise<void> {
  for (const url of urls) expect((await generate(url, at)).status, String(url)).toBe(202);
}

async function expectRefused(urls: readonly unknown[], at = service): Promise<void> {
  for (const url of urls) {
    expect(await generate(url, at), String(url)).toMatchObject({
      status: 422,
      json: {
        error: { type: 'invalid_request', param: 'webhook_url', message: expect.stringContaining('webhook_url') },
      },
    });
  }
}

it('D-address-1 a webhook_url is http or https', async () => {
  await expectAllowed(['http://example.com', 'https://example.com/hook?a=1', 'HTTPS://EXAMPLE.COM']);
  await expectRefused(['ftp://example.com', 'file:///etc/passwd', 'javascript:alert(1)', 'ws://example.com']);
  await expectRefused([
    'example.com/hook',
    '/hook',
    '',
    'http://',
    'https://exa mple.com',
    'https://example.com/\n',
    7,
    ['https://example.com'],
  ]);
});

it('D-address-2 a webhook_url with credentials is refused', async () => {
  await expectRefused(['https://user:password@example.com', 'https://user@example.com', 'https://:secret@example.com']);
});

it('D-address-3 a webhook_url may have any port but those of a short deny list', async () => {
  await expectAllowed(['https://example.com:8443', 'http://example.com:80', 'http://example.com:3000']);
  await expectRefused(['http://example.com:25', 'https://example.com:22', 'http://example.com:6667']);
});

/** Loopback, private, reserved and special addresses, in the spellings that a URL allows. */
const inside = {
  loopback: [
    '127.0.0.1',
    '127.255.255.254',
    '2130706433',
    '0x7f.1',
    '0177.0.0.1',
    '127.1',
    '[::1]',
    '[::ffff:127.0.0.1]',
  ],
  names: ['localhost', 'LOCALHOST.', 'api.localhost'],
  private: ['10.0.0.1', '172.16.0.1', '192.168.1.1', '[fc00::1]', '[fd12:3456::1]', '100.64.0.1'],
  link_local: ['169.254.169.254', '169.254.1.1', '[fe80::1]', '[::ffff:169.254.169.254]'],
  special: ['0.0.0.0', '[::]', '224.0.0.1', '255.255.255.255', '240.0.0.1', '192.0.2.1', '[ff02::1]', '[2001:db8::1]'],
  wrapped: ['[64:ff9b::7f00:1]', '[2002:7f00:1::1]', '168.63.129.16'],
};
const urls = (hosts: readonly string[]) => hosts.map((host) => `http://${host}/hook`);

it('D-address-4 a webhook_url with a literal address must be public unicast', async () => {
  await expectAllowed(urls(['93.184.215.14', '1.1.1.1', '[2606:4700:4700::1111]']));
  await expectRefused(urls(Object.values(inside).flat()));
});

it('D-address-6 net.allow permits address ranges, and permits none by default', async () => {
  await expectAllowed(urls(['10.1.2.3', '[fd12::1]', '127.0.0.1', 'localhost', '[::ffff:10.1.2.3]']), open);
  await expectRefused(urls(['10.2.0.1', '192.168.1.1', '169.254.169.254', '[::1]']), open);
});

it('D-address-7 MEDLEY_ALLOW_PRIVATE=1 permits private and loopback addresses', async () => {
  await expectAllowed(urls([...inside.loopback, ...inside.names, ...inside.private]), local);
});

it('D-address-8 MEDLEY_ALLOW_PRIVATE=1 never permits link-local, metadata or other reserved addresses', async () => {
  await expectRefused(urls([...inside.link_local, ...inside.special, ...inside.wrapped]), local);
});
