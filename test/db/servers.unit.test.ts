import { describe, expect, it } from 'vitest';
import { connectionTo } from '../../src/db/servers.ts';

const one = 'postgres://u:p%40%2C@db:5433/medley?sslmode=require';

describe('DATABASE_URL', () => {
  it.each([one, '/var/run/postgresql medley', 'postgres://u@/medley?host=/run', 'postgres://u@h/medley?a=1,2'])(
    'with one server is as pg has it (%s)',
    (url) => {
      expect(connectionTo(url)).toEqual({ connectionString: url });
    },
  );

  it.each([
    [`${one}&target_session_attrs=read-write`, one],
    ['postgres://db/medley?target_session_attrs=any', 'postgres://db/medley'],
    ['postgres://db/medley?target_session_attrs=primary&sslmode=require', 'postgres://db/medley?sslmode=require'],
  ])('may say that it wants a primary, which pg does not understand (%s)', (url, connectionString) => {
    expect(connectionTo(url)).toEqual({ connectionString });
  });

  it.each([
    ['postgres://u:p,p@a:1,b:2/medley?target_session_attrs=read-write', 'postgres://u:p,p@a:1/medley'],
    ['postgres://a,b,c', 'postgres://a'],
    ['postgres://u:p@[::1]:5,[::2]/medley?sslmode=require', 'postgres://u:p@[::1]:5/medley?sslmode=require'],
  ])('with several servers finds the one that takes writes (%s)', (url, connectionString) => {
    expect(connectionTo(url)).toEqual({ connectionString, Client: expect.any(Function) });
  });

  it.each(['standby', 'read-only', 'prefer-standby', ''])('is refused for servers that only read (%s)', (value) => {
    const url = `postgres://u:secret@a,b/medley?target_session_attrs=${value}`;
    expect(() => connectionTo(url)).toThrow(`target_session_attrs=${value}, and Medley needs a server that takes`);
    expect(() => connectionTo(url)).not.toThrow('secret');
  });
});
