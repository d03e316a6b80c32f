import { expect, it } from 'vitest';
import { scopeEndUsers } from '../../src/styles/end-users.ts';

const scope = (account_id: string) => ({ account_id, secret: 'a secret' });

it.each(['user', 'safety_identifier', 'prompt_cache_key'])(
  '%s gets another value for each account, the same one each time',
  (name) => {
    const one = scopeEndUsers({ model: 'm', [name]: 'user-1' }, scope('one'));
    expect(one).toEqual({ model: 'm', [name]: expect.stringMatching(/^[\w-]{43}$/) });
    expect(scopeEndUsers({ model: 'm', [name]: 'user-1' }, scope('one'))).toEqual(one);
    expect(scopeEndUsers({ model: 'm', [name]: 'user-1' }, scope('two'))[name]).not.toBe(one[name]);
    expect(scopeEndUsers({ model: 'm', [name]: 'user-2' }, scope('one'))[name]).not.toBe(one[name]);
  },
);

it('metadata.user_id gets another value for each account, and fields beside it stay', () => {
  const { metadata } = scopeEndUsers({ metadata: { user_id: 'u', a: 'b' } }, scope('one'));
  expect(metadata).toEqual({ user_id: expect.stringMatching(/^[\w-]{43}$/), a: 'b' });
});

it('a body without names of end users stays the same object', () => {
  const body = { model: 'm', user: 7, metadata: { a: 'b' } };
  expect(scopeEndUsers(body, scope('one'))).toBe(body);
});
