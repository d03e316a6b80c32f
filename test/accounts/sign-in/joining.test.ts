import { setTimeout } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createAccount } from '../../../src/accounts/accounts.ts';
import { usual_cost } from '../../../src/accounts/sign-in/hashing.ts';
import { firstOperator, ownerOf } from '../../../src/accounts/members.ts';
import { invitationName, withdrawInvitation } from '../../../src/accounts/team.ts';
import type { InvitedView } from '../../../src/dashboard/views/settings.ts';
import { memberOf, ownerOfNew, signInAs, okBody, type Someone } from '../../dashboard/people.ts';
import { startTestApp, type TestApp } from '../../helpers/app.ts';
import { browserOf, type Seen } from '../../helpers/person.ts';

/** Two who come in by the same door at the same moment. */

let test: TestApp;

beforeAll(async () => {
  // Hashing takes its time, as it does for people: whoever comes in the meantime is let through.
  test = await startTestApp({ worker: false, password_cost: usual_cost });
});

afterAll(() => test.stop());

const passwords = ['correct horse battery', 'another horse battery'];

async function invitationOf(owner: Someone, email: string): Promise<string> {
  const { link } = okBody<InvitedView>(await owner.post(`${owner.base}/team/invitations`, { email, role: 'viewer' }));
  return new URL(link).searchParams.get('id') ?? '';
}

const joinBy = (id: string, password = passwords[0]) =>
  browserOf(test.url).post('/auth/join', { id, name: 'Somebody', password });

const statuses = (answers: Seen[]) => answers.map(({ status }) => status).toSorted();

const waitingForLocks = async () => {
  const sql = `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
  return (await test.app.db.query(sql)).length;
};

/** Of everybody with this address: how many there are, how often they have a password, and where they belong. */
async function peopleAt(email: string) {
  const [row] = await test.app.db.query<{ people: number; passwords: number; memberships: number }>(
    `select count(*)::int as people,
            coalesce(sum((select count(*) from auth.account a where a."userId" = u.id)), 0)::int as passwords,
            coalesce(sum((select count(*) from auth.member m where m."userId" = u.id)), 0)::int as memberships
       from auth."user" u where u.email = $1`,
    [email],
  );
  return row;
}

describe('a new person', () => {
  it('who joins twice at once by one invitation becomes one person and is informed', async () => {
    const id = await invitationOf(await ownerOfNew(test), 'twice@example.com');
    const answers = await Promise.all(passwords.map((password) => joinBy(id, password)));
    const [joined, refused] = statuses(answers);
    expect(joined).toBe(200);
    expect([400, 409]).toContain(refused);
    expect(await peopleAt('twice@example.com')).toEqual({ people: 1, passwords: 1, memberships: 1 });
  });

  it('who joins two accounts at once signs in for the second one', async () => {
    const owners = [await ownerOfNew(test), await ownerOfNew(test)] as const;
    const ids = await Promise.all(owners.map((owner) => invitationOf(owner, 'both@example.com')));
    const answers = await Promise.all(ids.map((id) => joinBy(id)));
    expect(statuses(answers)).toEqual([200, 409]);
    expect(answers.find(({ status }) => status === 409)?.text).toContain('sign in, then open the invitation again');
    expect(await peopleAt('both@example.com')).toEqual({ people: 1, passwords: 1, memberships: 1 });
    const left = await Promise.all(ids.map((id) => browserOf(test.url).get(`/dash/invitations/${id}`)));
    expect(statuses(left)).toEqual([200, 404]); // the other one can still be accepted
  });

  it('leaves nothing behind when the invitation is withdrawn meanwhile', async () => {
    for (let round = 0; round < 3; round++) {
      const owner = await ownerOfNew(test);
      const email = `gone${round}@example.com`;
      const id = await invitationOf(owner, email);
      const joining = joinBy(id);
      await setTimeout(10 + 20 * round); // its password takes 50 ms
      const withdrawn = await withdrawInvitation(test.app.db, owner.account_id, invitationName(id));
      const { status } = await joining;
      const one = { people: 1, passwords: 1, memberships: 1 };
      const none = { people: 0, passwords: 0, memberships: 0 };
      expect([status, await peopleAt(email)]).toEqual(withdrawn === undefined ? [200, one] : [400, none]);
    }
  });
});

describe('an invitation of an owner', () => {
  const look = async (id: string) => (await browserOf(test.url).get(`/dash/invitations/${id}`)).status;

  it('opens nothing once they are removed, or are an owner no more', async () => {
    const owner = await ownerOfNew(test);
    const [first, second] = [await memberOf(test, owner, 'owner'), await memberOf(test, owner, 'owner')];
    const own = await invitationOf(owner, 'own@example.com');
    const [by_first, by_second] = [
      await invitationOf(first, 'back1@example.com'),
      await invitationOf(second, 'back2@example.com'),
    ];
    okBody(await owner.send('DELETE', `${owner.base}/team/${first.user_id}`));
    expect((await joinBy(by_first)).status).toBe(400);
    expect(await look(by_second)).toBe(200);
    okBody(await owner.send('PATCH', `${owner.base}/team/${second.user_id}`, { role: 'viewer' }));
    expect(await look(by_second)).toBe(404);
    expect(await look(own)).toBe(200);
  });
});

it('two invitations of one address at once leave one link that opens', async () => {
  const owner = await ownerOfNew(test);
  const { inviting } = await test.app.db.tx(async (tx) => {
    await tx.query('select 1 from auth.organization where id = $1 for update', [owner.account_id]);
    const answering = Promise.all([1, 2].map(() => invitationOf(owner, 'twice@example.com')));
    await expect.poll(waitingForLocks).toBe(2);
    return { inviting: answering };
  });
  const looks = (await inviting).map((id) => browserOf(test.url).get(`/dash/invitations/${id}`));
  expect(statuses(await Promise.all(looks))).toEqual([200, 404]);
});

it('an owner who is removed while they invite leaves no invitation', async () => {
  const owner = await ownerOfNew(test);
  const leaving = await memberOf(test, owner, 'owner');
  const body = { email: 'back3@example.com', role: 'owner' };
  const { inviting } = await test.app.db.tx(async (tx) => {
    await tx.query('select 1 from auth.organization where id = $1 for update', [owner.account_id]);
    const answering = leaving.post(`${leaving.base}/team/invitations`, body);
    await expect.poll(waitingForLocks).toBe(1);
    await tx.query('delete from auth.member where "userId" = $1', [leaving.user_id]);
    return { inviting: answering };
  });
  expect((await inviting).status).toBe(403);
  expect(await test.app.db.query('select 1 from auth.invitation where "inviterId" = $1', [leaving.user_id])).toEqual(
    [],
  );
});

describe('an invitation of an existing person', () => {
  it('makes one member when it is accepted twice at once', async () => {
    const owner = await ownerOfNew(test);
    const guest = await memberOf(test, await ownerOfNew(test), 'viewer');
    const id = await invitationOf(owner, `${guest.user_id}@example.com`);
    const answers = await Promise.all([1, 2, 3].map(() => guest.post(`/dash/invitations/${id}/accept`)));
    for (const { status } of answers) expect([200, 404]).toContain(status);
    expect(statuses(answers)[0]).toBe(200);
    expect(await peopleAt(`${guest.user_id}@example.com`)).toMatchObject({ people: 1, memberships: 2 });
  });
});

describe('an invitation that is renewed while it is accepted', () => {
  /** As `invite` does it: the account first, then what its guest had before. */
  async function renew(owner: Someone, id: string, meanwhile: () => Promise<Seen>): Promise<Seen> {
    const answer = await test.app.db.tx(async (tx) => {
      await tx.query('select 1 from auth.organization where id = $1 for update', [owner.account_id]);
      const answering = meanwhile();
      await expect.poll(waitingForLocks).toBeGreaterThan(0);
      await withdrawInvitation(tx, owner.account_id, invitationName(id));
      return { answering };
    });
    return answer.answering;
  }

  it('can no longer be accepted', async () => {
    const owner = await ownerOfNew(test);
    const guest = await memberOf(test, await ownerOfNew(test), 'viewer');
    const id = await invitationOf(owner, `${guest.user_id}@example.com`);
    const { status } = await renew(owner, id, () => guest.post(`/dash/invitations/${id}/accept`));
    expect(status).toBe(404);
    expect(await peopleAt(`${guest.user_id}@example.com`)).toMatchObject({ memberships: 1 });
  });

  it('admits no new person', async () => {
    const owner = await ownerOfNew(test);
    const id = await invitationOf(owner, 'renewed@example.com');
    expect((await renew(owner, id, () => joinBy(id))).status).toBe(400);
    expect(await peopleAt('renewed@example.com')).toMatchObject({ people: 0 });
  });
});

describe('a first password', () => {
  it('is set once, however many follow links of the first operator at once', async () => {
    const { id: account_id } = await createAccount(
      test.app.db,
      { name: 'First', currency: 'USD', initial_credit: 0n },
      new Date(),
    );
    const ids = await Promise.all([1, 2, 3].map(() => firstOperator(test.app.db, account_id, new Date())));
    expect(new Set(ids).size).toBe(1);
    const [user_id = ''] = ids;
    const both = [await signInAs(test, user_id, account_id), await signInAs(test, user_id, account_id)];
    const answers = await Promise.all(
      both.map((who, index) => {
        const form = { email: `op${index}@example.com`, name: `Op ${index}`, password: passwords[index] };
        return who.post('/auth/set-up', form);
      }),
    );
    expect(statuses(answers)).toEqual([200, 409]);
    const winner = answers.findIndex(({ status }) => status === 200);
    expect(await peopleAt(`op${winner}@example.com`)).toMatchObject({ people: 1, passwords: 1 });
    const credentials = { email: `op${winner}@example.com`, password: passwords[winner] };
    expect((await browserOf(test.url).post('/auth/sign-in/email', credentials)).status).toBe(200);
  });

  it('goes with an address that only one of two gets', async () => {
    const both = [await ownerOfNew(test), await ownerOfNew(test)];
    const form = { email: 'same@example.com', name: 'Same', password: passwords[0] };
    expect(statuses(await Promise.all(both.map((who) => who.post('/auth/set-up', form))))).toEqual([200, 409]);
    expect(await peopleAt('same@example.com')).toEqual({ people: 1, passwords: 1, memberships: 1 });
    // The other one has none yet, and may give another address.
    const others = await Promise.all(
      both.map((who) => who.post('/auth/set-up', { ...form, email: 'own@example.com' })),
    );
    expect(statuses(others)).toEqual([200, 409]);
  });
});

it('an account without an owner gets one, however many request a link at once', async () => {
  const account = { name: 'Without', currency: 'USD', initial_credit: 0n };
  const { id } = await createAccount(test.app.db, account, new Date());
  const owners = await Promise.all([1, 2, 3, 4].map(() => ownerOf(test.app.db, id, new Date())));
  expect(new Set(owners).size).toBe(1);
});
