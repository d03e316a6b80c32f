import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeLoginLink } from '../../src/accounts/login-links.ts';
import { ownerOfNew, type Someone } from '../dashboard/people.ts';
import { startTestApp, type TestApp } from '../helpers/app.ts';
import { browserOf } from '../helpers/person.ts';

/** How the service is reached, before and after a reload. */

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

describe('proxies that are trusted', () => {
  async function addressSeen(): Promise<string | null> {
    expect((await signIn({ 'x-forwarded-for': '203.0.113.7' })).status).toBe(200);
    const [newest] = await test.app.db.query<{ address: string | null }>(
      `select "ipAddress" as address from auth.session where "userId" = $1 order by "createdAt" desc limit 1`,
      [owner.user_id],
    );
    return newest?.address ?? null;
  }

  it('are those of the file as it was read last', async () => {
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
