import { expect } from 'vitest';
import { createAccount } from '../../src/accounts/accounts.ts';
import { makeLoginLink } from '../../src/accounts/sign-in/login-links.ts';
import { addMember, ownerOf } from '../../src/accounts/members.ts';
import type { Role } from '../../src/accounts/roles.ts';
import { retryWhileUnavailable } from '../../src/db/retry-while-unavailable.ts';
import { newId } from '../../src/lib/ids.ts';
import type { TestApp } from '../helpers/app.ts';
import { browserOf, type Browser, type Seen } from '../helpers/person.ts';

export type Someone = Browser & { user_id: string; account_id: string; base: string };

/** An account of its own, and its owner, signed in. */
export async function ownerOfNew(test: TestApp, name = 'Own', initial_credit = 10_000_000n): Promise<Someone> {
  const now = new Date();
  // The first statement of many files: on a busy machine PostgreSQL may need more than 5 s for a connection.
  const create = () => createAccount(test.app.db, { name, currency: 'USD', initial_credit }, now);
  const account = await retryWhileUnavailable(create);
  return signInAs(test, await ownerOf(test.app.db, account.id, now), account.id);
}

/** Somebody else of the same account, signed in. */
export async function memberOf(test: TestApp, { account_id }: { account_id: string }, role: Role): Promise<Someone> {
  const now = new Date();
  const user_id = newId('user');
  await test.app.db.query(`insert into auth."user" (id, name, email, "emailVerified") values ($1, $2, $3, false)`, [
    user_id,
    `A ${role}`,
    `${user_id}@example.com`,
  ]);
  await addMember(test.app.db, { account_id, user_id, role }, now);
  return signInAs(test, user_id, account_id);
}

export async function signInAs(test: TestApp, user_id: string, account_id: string): Promise<Someone> {
  const browser = browserOf(test.url);
  const statuses: number[] = [];
  while (statuses.at(-1) !== 200) {
    const link = await makeLoginLink(test.app.db, test.url, user_id, new Date());
    const { status } = await browser.post('/auth/sign-in/link', { token: new URL(link).searchParams.get('token') });
    statuses.push(status);
    // On a machine that is full the library's database needs more than its 6 s.
    if (status !== 200 && (status < 500 || statuses.length === tries_max))
      throw new Error(`links of ${user_id} were answered ${statuses.join(', ')}`);
  }
  return { ...browser, user_id, account_id, base: `/dash/accounts/${account_id}` };
}

const tries_max = 5;

/** The answer of an endpoint that worked. */
export function okBody<T>({ status, json, text }: Seen): T {
  expect(status, text).toBeLessThan(300);
  return json as T;
}
