import { createHmac } from 'node:crypto';
import { expect } from 'vitest';
import { createAccount, findAccount } from '../../src/accounts/accounts.ts';
import { createKey } from '../../src/accounts/keys.ts';
import { addMember } from '../../src/accounts/members.ts';
import type { Role } from '../../src/accounts/roles.ts';
import { newId } from '../../src/lib/ids.ts';
import { close, hold } from '../../src/money/holds.ts';
import { credit } from '../../src/money/ledger.ts';
import type { TestApp } from '../helpers/app.ts';
import type { TestClock } from '../helpers/clock.ts';
import type { Received } from '../helpers/receiver.ts';

export const minute = 60_000;
export const hour = 60 * minute;
export const { signal } = new AbortController();

/** Accounts, people and money of a test, by its clock. */
export function worldOf(test: TestApp, clock: TestClock) {
  const { db } = test.app;
  const now = () => new Date(clock.now());
  let spent = 0;

  /** An account with 10.00, and with a member of each address. */
  const account = async (name: string, members: Record<string, Role> = {}): Promise<string> => {
    const { id } = await createAccount(db, { name, currency: 'USD', initial_credit: 10_000_000n }, now());
    for (const [email, role] of Object.entries(members)) await member(id, email, role);
    return id;
  };
  /** Returns who it is. */
  const member = async (account_id: string, email: string, role: Role): Promise<string> => {
    const user_id = newId('user');
    await db.query(
      `insert into auth."user" (id, name, email, "emailVerified", "createdAt", "updatedAt") values ($1, 'Member', $2, true, $3, $3)`,
      [user_id, email, now()],
    );
    await addMember(db, { account_id, user_id, role }, now());
    return user_id;
  };
  const keyOf = async (account_id: string, limit_month: bigint | null = null, name = 'Test') =>
    (await createKey(db, { account_id, name, limit_month }, now())).key.id;
  const spend = async (
    account_id: string,
    amount: bigint,
    { key_id, model = 'test/model' }: { key_id?: string; model?: string } = {},
  ): Promise<void> => {
    const ref = `task_${++spent}`;
    const spender = key_id ?? (await keyOf(account_id));
    await hold(db, { account_id, key_id: spender, ref, amount, model, kind: 'image' }, now());
    await close(db, { account_id, ref, cost: amount, beyond_hold: false }, now());
  };
  const topUp = async (account_id: string, amount: bigint): Promise<void> => {
    await credit(db, { account_id, type: 'topup', amount, ref: `paid ${++spent}`, reason: 'test' }, now());
  };
  return { account, member, keyOf, spend, topUp };
}

/** Fields of an alert that a receiver reads. */
export type AlertBody = {
  event: string;
  kind: string;
  level: string;
  number: number;
  subject: string | null;
  id: string;
};

/** Returns the body of a webhook, whose signatures are those of this secret. */
export function genuine({ headers, body }: Received, secret: string): AlertBody {
  const hex = createHmac('sha256', secret).update(body).digest('hex');
  expect(headers['x-service-signature']).toBe(`sha256=${hex}`);
  const signed = `${String(headers['webhook-id'])}.${String(headers['webhook-timestamp'])}.`;
  const bytes = Buffer.from(secret.slice('whsec_'.length), 'base64');
  const standard = createHmac('sha256', bytes).update(signed).update(body).digest('base64');
  expect(headers['webhook-signature']).toBe(`v1,${standard}`);
  const message = JSON.parse(body.toString()) as AlertBody;
  expect(headers['x-service-event']).toBe(`alert.${message.event}`);
  return message;
}

export async function secretOf(test: TestApp, account_id: string): Promise<string> {
  return (await findAccount(test.app.db, account_id))?.webhook_secret ?? '';
}
