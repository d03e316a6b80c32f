import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { okBody, ownerOfNew, type Someone } from '../../dashboard/people.ts';
import { startTestApp, type TestApp } from '../../helpers/app.ts';
import { whileLocked } from '../../helpers/locked.ts';
import { browserOf, type Seen } from '../../helpers/person.ts';

/** The tables of the login library do not answer: somebody holds a lock, or the server is too busy. */

let test: TestApp;
let owner: Someone;

const away = 'The service cannot reach its database at the moment. Try again shortly.';
const who = { email: 'olga@example.com', password: 'correct horse battery' };

beforeAll(async () => {
  test = await startTestApp({ worker: false });
  owner = await ownerOfNew(test);
  okBody(await owner.post('/auth/set-up', { ...who, name: 'Olga' }));
});

afterAll(() => test.stop());

const signIn = () => browserOf(test.url).post('/auth/sign-in/email', who);

function expectToTryAgain(answers: Seen[]): void {
  for (const { status, headers, json } of answers) {
    expect([status, json]).toMatchObject([503, { error: { message: away } }]);
    expect(headers.get('retry-after')).toBe('1');
  }
}

describe('while the tables of the login do not answer', () => {
  it('pages and people who sign in hear that they try again, and no try counts as a wrong password', async () => {
    const free_tries = 5;
    const looks = 6; // more than the login has connections
    await whileLocked(test.app.db, 'auth.session', async () => {
      const tries = Promise.all(Array.from({ length: free_tries }, signIn));
      const pages = Promise.all(Array.from({ length: looks }, () => owner.get('/dash/me')));
      expectToTryAgain([...(await tries), ...(await pages)]);
    });
    expect((await owner.get('/dash/me')).status).toBe(200);
    expect((await signIn()).status).toBe(200);
  });

  it('a person who is signed in is not answered as if nobody were', async () => {
    await whileLocked(test.app.db, 'auth.session', async () => {
      const change = { currentPassword: who.password, newPassword: 'another correct horse' };
      expectToTryAgain([await owner.post('/auth/change-password', change)]);
    });
    expect((await signIn()).status).toBe(200);
  });
});
