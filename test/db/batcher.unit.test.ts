import pg from 'pg';
import { describe, expect, it } from 'vitest';
import { makeBatcher } from '../../src/db/batcher.ts';

/** A database that answers n with 2n, breaks a rule for every call with `bad` in it, and writes calls down. */
function database(options: { bad?: number; lost?: (call: number) => boolean } = {}) {
  const calls: number[][] = [];
  const together = async (members: readonly number[]) => {
    calls.push([...members]);
    await new Promise((resolve) => setImmediate(resolve));
    if (options.lost?.(calls.length)) throw new Error('Connection terminated unexpectedly');
    if (options.bad !== undefined && members.includes(options.bad)) throw refusal();
    return members.map((n) => 2 * n);
  };
  return { calls, together };
}

function refusal(code = '23514'): pg.DatabaseError {
  return Object.assign(new pg.DatabaseError('violates a check', 1, 'error'), { code });
}

const from = (first: number, count: number) => Array.from({ length: count }, (_, i) => first + i);

describe('a batcher', () => {
  it('sends what came in one turn in one call, and what comes meanwhile in the next', async () => {
    const { calls, together } = database();
    const send = makeBatcher({ together });
    const first = from(1, 5).map(send);
    await new Promise((resolve) => setImmediate(resolve));
    const later = from(6, 3).map(send);
    expect(await Promise.all([...first, ...later])).toEqual(from(1, 8).map((n) => 2 * n));
    expect(calls).toEqual([from(1, 5), from(6, 3)]);
  });

  it('sends at most batch_max members in a call, in their order', async () => {
    const { calls, together } = database();
    const send = makeBatcher({ together, batch_max: 3 });
    await Promise.all(from(1, 7).map(send));
    expect(calls).toEqual([from(1, 3), from(4, 3), [7]]);
  });

  it('sends a member without company by the plain call, if there is one', async () => {
    const { calls, together } = database();
    const alone: number[] = [];
    const plain = makeBatcher({ together, alone: async (n: number) => (alone.push(n), -n) });
    expect([await plain(1), await Promise.all([plain(2), plain(3)])]).toEqual([-1, [4, 6]]);
    expect({ alone, calls }).toEqual({ alone: [1], calls: [[2, 3]] });
    expect(await makeBatcher({ together })(4)).toBe(8);
    expect(calls.at(-1)).toEqual([4]);
  });

  it('waits for company where nobody waits for the answer, but not once a call is full', async () => {
    const { calls, together } = database();
    const send = makeBatcher({ together, batch_max: 4, linger_ms: 30 });
    const answers = [send(1)];
    await new Promise((resolve) => setTimeout(resolve, 1));
    answers.push(send(2));
    await Promise.all(answers);
    expect(calls).toEqual([[1, 2]]);
    const begun_ms = performance.now();
    await Promise.all(from(1, 4).map(makeBatcher({ together, batch_max: 4, linger_ms: 60_000 })));
    expect(calls.at(-1)).toEqual(from(1, 4));
    expect(performance.now() - begun_ms).toBeLessThan(30_000);
  });

  it('lets members of one name wait for each other, all later ones of their group behind them, and nobody else', async () => {
    const { calls, together } = database();
    const names = { nameOf: (n: number) => String(n % 10), groupOf: (n: number) => String(Math.floor(n / 100)) };
    const send = makeBatcher({ together, names });
    expect(await Promise.all([1, 11, 102, 4, 21, 105].map(send))).toEqual([2, 22, 204, 8, 42, 210]);
    expect(calls).toEqual([[1, 102, 105], [11, 4], [21]]);
  });

  it.each(['22003', '22P02', '23503', '23514', '54000'])(
    'a member that the database refuses with %s fails alone',
    async (code) => {
      const { together } = database();
      const send = makeBatcher({
        together: async (members: readonly number[]) => {
          if (members.includes(3)) throw refusal(code);
          return together(members);
        },
      });
      const outcomes = await Promise.allSettled(from(1, 5).map(send));
      expect(outcomes.map((each) => (each.status === 'fulfilled' ? each.value : 'refused'))).toEqual([
        2,
        4,
        'refused',
        8,
        10,
      ]);
    },
  );

  it('does not repeat what was refused', async () => {
    const { calls, together } = database({ bad: 1 });
    await expect(makeBatcher({ together })(1)).rejects.toThrow('violates a check');
    expect(calls).toEqual([[1]]);
  });

  it('repeats a call whose answer was lost', async () => {
    const { calls, together } = database({ lost: (call) => call <= 2 });
    const send = makeBatcher({ together });
    expect(await Promise.all([1, 2].map(send))).toEqual([2, 4]);
    expect(calls).toEqual([
      [1, 2],
      [1, 2],
      [1, 2],
    ]);
  });

  it('tells all who wait that the database is away, after three tries, and works again afterwards', async () => {
    const { calls, together } = database({ lost: (call) => call <= 3 });
    const send = makeBatcher({ together, batch_max: 2 });
    const outcomes = await Promise.allSettled(from(1, 9).map(send));
    expect(outcomes.map((each) => each.status)).toEqual(Array(9).fill('rejected'));
    expect(calls.length).toBe(3);
    expect(await send(10)).toBe(20);
  });

  it('an answer short of a member is nobody’s', async () => {
    const send = makeBatcher({ together: async (members: readonly number[]) => members.slice(1) });
    const outcomes = await Promise.allSettled([1, 2].map(send));
    expect(outcomes.map((each) => each.status)).toEqual(['rejected', 'rejected']);
  });
});
