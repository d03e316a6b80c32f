import { makeLoginLink } from '../../src/accounts/sign-in/login-links.ts';
import { ownerOf } from '../../src/accounts/members.ts';
import type { Role } from '../../src/accounts/roles.ts';
import type { TestApp } from '../helpers/app.ts';
import { browserOf } from '../helpers/person.ts';

/** Somebody who has signed in, for what the dashboard asks of the service. */
export type Person = {
  /** Throws unless it was answered with a 2xx. */
  ask<T>(method: string, path: string, body?: unknown): Promise<T>;
};

type Named = { name: string; email: string };

const password = 'a password for pictures';
const firefox = 'Mozilla/5.0 (Macintosh; Intel Mac OS X 10.15; rv:144.0) Gecko/20100101 Firefox/144.0';

/** Comes by a link, and gives a name. */
export async function comeByLink(service: TestApp, user_id: string, named: Named): Promise<Person> {
  const { app } = service;
  const person = somebody(service, named.email);
  const link = await makeLoginLink(app.db, app.base_url(), user_id, new Date());
  await person.ask('POST', '/auth/sign-in/link', { token: new URL(link).searchParams.get('token') });
  await person.ask('POST', '/auth/set-up', { ...named, password });
  return person;
}

/** The owner of an account, who has a name from now on. */
export async function ownerBy(service: TestApp, account_id: string, named: Named) {
  const user_id = await ownerOf(service.app.db, account_id, new Date());
  return { user_id, person: await comeByLink(service, user_id, named) };
}

/** Is invited by the owner, and joins. */
export async function joinAs(service: TestApp, owner: Person, account_id: string, role: Role, named: Named) {
  const link = await inviteTo(owner, account_id, role, named.email);
  const id = new URL(link).searchParams.get('id');
  const person = somebody(service, named.email);
  await person.ask('POST', '/auth/join', { id, name: named.name, password });
  const { user } = await person.ask<{ user: { id: string } }>('GET', '/dash/me');
  return { user_id: user.id, person };
}

/** Answers the link of the invitation. */
export async function inviteTo(owner: Person, account_id: string, role: Role, email: string): Promise<string> {
  const path = `/dash/accounts/${account_id}/team/invitations`;
  return (await owner.ask<{ link: string }>('POST', path, { role, email })).link;
}

/** Sessions end after a week of absence: then one signs in again. Some acts ask for the password after a while. */
function somebody({ url, app }: TestApp, email: string): Person {
  const browser = browserOf(url);
  const send = (method: string, path: string, body?: unknown) =>
    browser.send(method, path, body, { origin: app.base_url(), 'user-agent': firefox });
  return {
    ask: async <T>(method: string, path: string, body?: unknown) => {
      let answer = await send(method, path, body);
      if (answer.status === 401) {
        await send('POST', '/auth/sign-in/email', { email, password });
        answer = await send(method, path, body);
      }
      if (answer.status === 403 && answer.text.includes('"proof_required"')) {
        await send('POST', '/auth/prove', { password });
        answer = await send(method, path, body);
      }
      if (answer.status >= 300) throw new Error(`${method} ${path} was answered ${answer.status}: ${answer.text}`);
      return answer.json as T; // the types of both sides come from the same file
    },
  };
}
