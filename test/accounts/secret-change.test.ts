import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { addProvider } from '../../src/catalog/added/rows.ts';
import { examineSecret } from '../../src/cli/doctor-secret.ts';
import { removeAllOld } from '../../src/worker.ts';
import { okBody } from '../dashboard/people.ts';
import { startTestApp, type TestApp } from '../helpers/app.ts';
import { browserOf } from '../helpers/person.ts';
import { earlierTotp, secretOf, totpOf } from '../helpers/totp.ts';
import { password, personWith } from './service-with-mail.ts';

/** A change of MEDLEY_SECRET: what lies under the old one goes over to the new one, and `doctor` says how far that is. */

const first = 'the first secret of this service';
const second = 'the second secret of this service';
const all_good = { ok: true, detail: 'whatever is encrypted is so with MEDLEY_SECRET' };

let service: TestApp;
beforeAll(async () => {
  service = await startTestApp({ env: { MEDLEY_SECRET: first }, worker: false });
});
afterAll(() => service.stop());

/** Another node of the service, in which the secret has changed. */
async function withSecrets<T>(env: Record<string, string>, work: (node: TestApp) => Promise<T>): Promise<T> {
  const node = await service.beside({ env });
  try {
    return await work(node);
  } finally {
    await node.stop();
  }
}

let places = 0;
const elsewhere = () => ({ 'x-forwarded-for': `198.19.0.${++places}` });

/** Signs in by password and a code. */
async function signIn(node: TestApp, email: string, code: string): Promise<number> {
  const browser = browserOf(node.url);
  okBody(await browser.post('/auth/sign-in/email', { email, password }, elsewhere()));
  return (await browser.post('/auth/two-factor/verify-totp', { code }, elsewhere())).status;
}

describe('a change of the secret', () => {
  it('moves stored content, keys of providers and authenticators to the new one, and says when the old one can go', async () => {
    const client = await service.client();
    await client.call('POST', '/v1/responses', { model: 'sandbox/chat', input: 'Hello' });
    const entry = { adapter: 'openai', base_url: 'https://api.example.com/v1' };
    const added = { name: 'acme', preset: null, prefix: '', margin: '1', entry, api_key: 'a-secret-key' };
    await addProvider(service.app.db, service.app.content_keys, added, new Date());
    const who = await personWith(service, 'one@example.com', elsewhere());
    const { totpURI } = okBody<{ totpURI: string }>(
      await who.post('/auth/two-factor/enable', { password }, elsewhere()),
    );
    const code = (steps: number) => totpOf(secretOf(totpURI), steps);
    okBody(await who.post('/auth/two-factor/verify-totp', { code: await earlierTotp(secretOf(totpURI)) }, elsewhere()));
    expect(await examineSecret(service.app)).toEqual(all_good);

    await withSecrets({ MEDLEY_SECRET: second }, async ({ app }) => {
      expect(await examineSecret(app)).toEqual({
        ok: false,
        detail: '2 entries cannot be read: set the secret that they are encrypted with as MEDLEY_SECRET_BEFORE',
      });
    });
    await withSecrets({ MEDLEY_SECRET: second, MEDLEY_SECRET_BEFORE: first }, async (node) => {
      expect(await examineSecret(node.app)).toEqual({
        ok: true,
        detail: expect.stringMatching(
          /^3 entries still encrypted with an earlier secret: .* leave MEDLEY_SECRET_BEFORE set/,
        ),
      });
      await removeAllOld(node.app, new AbortController().signal);
      expect(await examineSecret(node.app)).toEqual({
        ok: true,
        detail:
          'nothing is encrypted with MEDLEY_SECRET_BEFORE any more: it can go once every process has the new secret',
      });
      expect(await signIn(node, 'one@example.com', code(0))).toBe(200);
    });
    await withSecrets({ MEDLEY_SECRET: second }, async (node) => {
      expect(await examineSecret(node.app)).toEqual(all_good);
      expect(await signIn(node, 'one@example.com', code(1))).toBe(200);
    });
    expect(await examineSecret(service.app)).toMatchObject({
      ok: false,
      detail: expect.stringMatching(/^2 entries cannot/),
    });
  });

  it('leaves alone what no secret opens, and goes on with the others', async () => {
    await service.app.db.query(
      `update auth."twoFactor" set secret = 'ab', "backupCodes" = 'cd'
        where "userId" = (select id from auth."user" where email = 'one@example.com')`,
    );
    await withSecrets(
      { MEDLEY_SECRET: 'the third secret of this service', MEDLEY_SECRET_BEFORE: second },
      async (node) => {
        await removeAllOld(node.app, new AbortController().signal);
        expect(await examineSecret(node.app)).toMatchObject({
          ok: false,
          detail: expect.stringMatching(/^1 entry cannot be read: .*; nothing is encrypted with MEDLEY_SECRET_BEFORE/),
        });
      },
    );
  });
});

describe('a service without a secret of the operator’s', () => {
  it('is in order, and people with an authenticator sign in after one is set', async () => {
    const own = await startTestApp({ worker: false });
    try {
      const who = await personWith(own, 'two@example.com', elsewhere());
      const enabled = await who.post('/auth/two-factor/enable', { password }, elsewhere());
      const { totpURI } = okBody<{ totpURI: string }>(enabled);
      okBody(
        await who.post('/auth/two-factor/verify-totp', { code: await earlierTotp(secretOf(totpURI)) }, elsewhere()),
      );
      expect(await examineSecret(own.app)).toEqual({
        ok: true,
        detail: 'MEDLEY_SECRET is not set: stored content and keys of providers lie as they are',
      });
      const node = await own.beside({ env: { MEDLEY_SECRET: first } });
      try {
        await removeAllOld(node.app, new AbortController().signal);
        expect(await signIn(node, 'two@example.com', totpOf(secretOf(totpURI)))).toBe(200);
      } finally {
        await node.stop();
      }
    } finally {
      await own.stop();
    }
  });
});
