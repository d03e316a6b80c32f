import { Readable } from 'node:stream';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { transportSecurity } from '../../src/http/browser-headers.ts';
import type { Endpoint } from '../../src/http/endpoint.ts';
import { startTestApp, type TestApp } from '../helpers/app.ts';
import { startHarness, type TestApp as HarnessApp } from '../api/harness.ts';

const docs = { tag: 'Test', summary: 'Test', responses: { 200: { description: 'ok' } } };
const open = { public: true, docs } as const;

const endpoints: Endpoint<HarnessApp>[] = [
  { method: 'GET', path: '/v1/tasks', docs, handle: () => ({ status: 200, body: {} }) },
  { ...open, method: 'GET', path: '/bytes', handle: () => ({ status: 200, body: Buffer.from('bytes') }) },
  { ...open, method: 'GET', path: '/stream', handle: () => ({ status: 200, body: Readable.from(['a', 'b']) }) },
];

describe('Strict-Transport-Security', () => {
  it.each([
    ['https://api.example.com', 'host', 'max-age=31536000'],
    ['https://api.example.com/medley', 'subdomains', 'max-age=31536000; includeSubDomains'],
    ['https://api.example.com', 'off', undefined],
    ['http://127.0.0.1:8080', 'host', undefined],
    ['http://https.example.com', 'subdomains', undefined],
  ] as const)('a service at %s with hsts: %s sends %s', (base_url, scope, header) => {
    expect(transportSecurity(base_url, scope)).toBe(header);
  });

  it('every answer carries it: also refusals, streams and what the HTTP parser refuses', async () => {
    const harness = await startHarness(endpoints, { transport_security: () => 'max-age=31536000' });
    try {
      const answers = [
        await harness.send('GET', '/v1/tasks'),
        await harness.send('GET', '/v1/tasks', { key: null }),
        await harness.send('GET', '/bytes'),
        await harness.send('GET', '/stream'),
        await harness.send('GET', '/nowhere'),
        await harness.send('GET', '/v1/tasks/%zz'),
      ];
      expect(answers.map(({ status }) => status)).toEqual([200, 401, 200, 200, 404, 400]);
      for (const { headers } of answers) expect(headers['strict-transport-security']).toBe('max-age=31536000');
      expect(await harness.sendRaw('GET / HTTP/1.1\r\nbroken\r\n\r\n')).toContain('strict-transport-security: max-age');
    } finally {
      await harness.close();
    }
  });
});

describe('every answer', () => {
  it('that is no page loads nothing, stands in no frame, tells no address and has a charset', async () => {
    const harness = await startHarness(endpoints);
    try {
      for (const path of ['/v1/tasks', '/nowhere', '/v1/tasks/%zz']) {
        const { headers } = await harness.send('GET', path);
        expect(headers).toMatchObject({
          'content-security-policy': "default-src 'none'; base-uri 'none'; frame-ancestors 'none'",
          'content-type': 'application/json; charset=utf-8',
          'referrer-policy': 'no-referrer',
        });
        expect(headers['strict-transport-security']).toBeUndefined();
      }
      expect(await harness.sendRaw('GET / HTTP/1.1\r\nbroken\r\n\r\n')).toContain("frame-ancestors 'none'");
    } finally {
      await harness.close();
    }
  });
});

describe('a service with an https address', () => {
  let service: TestApp;
  beforeAll(async () => {
    service = await startTestApp({
      worker: false,
      yaml: 'version: 1\nserver: { base_url: "https://api.example.com", hsts: subdomains }\n',
    });
  });
  afterAll(() => service.stop());

  it.each(['/', '/sign-in', '/docs', '/docs/', '/v1/models', '/auth/ok', '/livez'])(
    '%s is answered with Strict-Transport-Security as the setting says',
    async (path) => {
      const { headers } = await fetch(service.app.local_url() + path);
      expect(headers.get('strict-transport-security')).toBe('max-age=31536000; includeSubDomains');
    },
  );

  it.each(['/', '/sign-in', '/docs', '/docs/'])(
    'the page %s has no use for camera, place or payments',
    async (path) => {
      const { headers } = await fetch(service.app.local_url() + path);
      expect(headers.get('content-type')).toContain('text/html');
      const policy = headers.get('permissions-policy')?.split(', ');
      expect(policy).toEqual(expect.arrayContaining(['camera=()', 'geolocation=()', 'payment=()']));
      expect(headers.get('cross-origin-opener-policy')).toBe('same-origin');
    },
  );

  it.each([
    ['/', 'microphone=(self)'],
    ['/sign-in', 'microphone=(self)'],
    ['/docs', 'microphone=()'],
    ['/docs/', 'microphone=()'],
    ['/guide', 'microphone=()'],
  ])('the page %s says %s: the dashboard alone records, and no frame does', async (path, rule) => {
    const { headers } = await fetch(service.app.local_url() + path);
    expect(headers.get('permissions-policy')?.split(', ')).toContain(rule);
  });

  it.each(['/', '/sign-in'])('the page %s is kept by no cache of a browser', async (path) => {
    const { headers } = await fetch(service.app.local_url() + path);
    expect(headers.get('cache-control')).toBe('no-store');
  });

  it.each(['/', '/sign-in', '/docs', '/docs/'])('the page %s runs no script that stands in it', async (path) => {
    const answer = await fetch(service.app.local_url() + path);
    const policy = answer.headers.get('content-security-policy')?.split('; ');
    expect(policy).toEqual(expect.arrayContaining(["default-src 'none'", "base-uri 'none'", "frame-ancestors 'none'"]));
    expect(policy?.find((directive) => directive.startsWith('script-src '))).toBe("script-src 'self'");
    expect(await answer.text()).not.toMatch(/<script(?![^>]*\ssrc=)/);
  });
});
