import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeLoginLink } from '../../src/accounts/sign-in/login-links.ts';
import { openIssuers } from '../../src/accounts/sign-in/issuers.ts';
import { openLogin } from '../../src/accounts/sign-in/login.ts';
import { no_mail_domain } from '../../src/accounts/sign-in/login-rules.ts';
import type { Mail } from '../../src/accounts/mailer.ts';
import { ownerOfNew, type Someone } from '../dashboard/people.ts';
import { windowsOfOneProcess } from '../helpers/windows.ts';
import { startTestApp, type TestApp } from '../helpers/app.ts';
import { browserOf } from '../helpers/person.ts';

/** Addresses at which the service is reached, before and after a reload. */

let test: TestApp;
let owner: Someone;

const without = 'version: 1\n';

beforeAll(async () => {
  test = await startTestApp({ worker: false, yaml: without });
  owner = await ownerOfNew(test);
});

afterAll(() => test.stop());

/** Signs in anew, by this page. */
async function signIn(headers: Record<string, string> = {}) {
  const link = await makeLoginLink(test.app.db, test.url, owner.user_id, new Date());
  const token = new URL(link).searchParams.get('token');
  return browserOf(test.url).post('/auth/sign-in/link', { token }, headers);
}

describe('the trusted proxies', () => {
  async function addressSeen(): Promise<string | null> {
    expect((await signIn({ 'x-forwarded-for': '203.0.113.7' })).status).toBe(200);
    const [newest] = await test.app.db.query<{ address: string | null }>(
      `select "ipAddress" as address from auth.session where "userId" = $1 order by "createdAt" desc limit 1`,
      [owner.user_id],
    );
    return newest?.address ?? null;
  }

  it('are those of the file as it was last read', async () => {
    expect(await addressSeen()).toBe('127.0.0.1');
    await test.configure('version: 1\nserver: { trusted_proxies: [127.0.0.0/8] }\n');
    expect(await addressSeen()).toBe('203.0.113.7');
    await test.configure('version: 1\nserver: { trusted_proxies: ["::1/128", 10.0.0.0/8] }\n');
    expect(await addressSeen()).toBe('127.0.0.1');
    await test.configure('version: 1\nserver: { trusted_proxies: [127.0.0.1/32] }\n');
    expect(await addressSeen()).toBe('203.0.113.7');
    await test.configure(without);
    expect(await addressSeen()).toBe('127.0.0.1');
  });
});

describe('the public address', () => {
  const at = (url: string) => `version: 1\nserver: { base_url: "${url}" }\n`;
  const from = (origin: string) => ({ origin, 'sec-fetch-site': 'same-origin' });

  it('is that of the file as it was last read, also for people who sign in', async () => {
    await test.configure(at('http://first.example'));
    expect((await signIn(from('http://first.example'))).status).toBe(200);
    await test.configure(at('https://second.example'));
    expect((await signIn(from('http://first.example'))).status).toBe(403);
    const signed_in = await signIn(from('https://second.example'));
    expect(signed_in.status).toBe(200);
    const [cookie = ''] = signed_in.cookies;
    expect(cookie).toMatch(/^__Host-medley\.session_token=.*; Secure/i);
    await test.configure(without);
    const again = await signIn();
    expect(again.cookies[0]).toMatch(/^medley\.session_token=/);
  });

  it('is in the links of mails from then on', async () => {
    let base_url = 'http://first.example';
    const mails: Mail[] = [];
    const { db, secret } = test.app;
    const login = openLogin({
      db,
      secret,
      base_url: () => base_url,
      now: () => new Date(),
      mailer: { post: (mail) => void mails.push(mail), ready: () => true },
      windows: windowsOfOneProcess(),
      log: test.app.log,
      issuers: openIssuers({ guard: test.app.guard, now: () => new Date() }),
      sign_in: () => test.app.catalog.current.settings.sign_in,
      base_currency: () => 'USD',
    });
    const body = Buffer.from(JSON.stringify({ email: `${owner.user_id}@${no_mail_domain}` }));
    const headers = { 'content-type': 'application/json' };
    const ask = () =>
      login.answer({ method: 'POST', path: '/request-password-reset', query: '', headers, body, address: '192.0.2.1' });
    await ask();
    base_url = 'http://first.example/below'; // the same origin
    await ask();
    await login.close();
    expect(mails.map(({ text }) => /http:\S+(?=\?)/.exec(text)?.[0])).toEqual([
      'http://first.example/reset-password',
      'http://first.example/below/reset-password',
    ]);
  });

  it('may have a path that a proxy removes again', async () => {
    await test.configure(at('https://apps.example/medley/'));
    const link = await makeLoginLink(test.app.db, test.app.base_url(), owner.user_id, new Date());
    expect(link).toMatch(/^https:\/\/apps\.example\/medley\/sign-in\?token=/);
    expect((await signIn(from('https://apps.example'))).status).toBe(200);
    await test.configure(without);
  });
});
