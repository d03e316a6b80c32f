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
  it('sends the members of one turn in one call, and later ones in the next', async () => {
    const { calls, together } = database();
    const send = makeBatcher({ together });
    const first = from(1, 5).map(send);
    await new Promise((resolve) => setImmediate(resolve));
    const later = from(6, 3).map(send);
    expect(await Promise.all([...first, ...later])).toEqual(from(1, 8).map((n) => 2 * n));
    expect(calls).toEqual([from(1, 5), from(6, 3)]);
  });

  it('sends at most batch_max members per call, in their order', async () => {
    const { calls, together } = database();
    const send = makeBatcher({ together, batch_max: 3 });
    await Promise.all(from(1, 7).map(send));
    expect(calls).toEqual([from(1, 3), from(4, 3), [7]]);
  });

  it('sends a single member by the plain call, if there is one', async () => {
    const { calls, together } = database();
    const alone: number[] = [];
    const plain = makeBatcher({ together, alone: async (n: number) => (alone.push(n), -n) });
    expect([await plain(1), await Promise.all([plain(2), plain(3)])]).toEqual([-1, [4, 6]]);
    expect({ alone, calls }).toEqual({ alone: [1], calls: [[2, 3]] });
    expect(await makeBatcher({ together })(4)).toBe(8);
    expect(calls.at(-1)).toEqual([4]);
  });

  it('waits for more members where nobody waits for the result, but not once a call is full', async () => {
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

  it('lets members of one name wait for each other, with all later ones of their group after them, and no others', async () => {
    const { calls, together } = database();
    const names = { nameOf: (n: number) => String(n % 10), groupOf: (n: number) => String(Math.floor(n / 100)) };
    const send = makeBatcher({ together, names });
    expect(await Promise.all([1, 11, 102, 4, 21, 105].map(send))).toEqual([2, 22, 204, 8, 42, 210]);
    expect(calls).toEqual([[1, 102, 105], [11, 4], [21]]);
  });

  it.each(['22003', '22P02', '23503', '23514', '54000'])(
    'fails only the member that the database refuses with %s',
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

  it('does not repeat a refused member', async () => {
    const { calls, together } = database({ bad: 1 });
    await expect(makeBatcher({ together })(1)).rejects.toThrow('violates a check');
    expect(calls).toEqual([[1]]);
  });

  it('repeats a call whose confirmation was lost', async () => {
    const { calls, together } = database({ lost: (call) => call <= 2 });
    const send = makeBatcher({ together });
    expect(await Promise.all([1, 2].map(send))).toEqual([2, 4]);
    expect(calls).toEqual([
      [1, 2],
      [1, 2],
      [1, 2],
    ]);
  });

  it('reports after three tries to all waiting members that the database is away, and works again afterwards', async () => {
    const { calls, together } = database({ lost: (call) => call <= 3 });
    const send = makeBatcher({ together, batch_max: 2 });
    const outcomes = await Promise.allSettled(from(1, 9).map(send));
    expect(outcomes.map((each) => each.status)).toEqual(Array(9).fill('rejected'));
    expect(calls.length).toBe(3);
    expect(await send(10)).toBe(20);
  });

  it('uses no result that is a member short', async () => {
    const send = makeBatcher({ together: async (members: readonly number[]) => members.slice(1) });
    const outcomes = await Promise.allSettled([1, 2].map(send));
    expect(outcomes.map((each) => each.status)).toEqual(['rejected', 'rejected']);
  });

  it('overtakes a slow call with members of other groups, and keeps the order within a group', async () => {
    const { calls, together, answerSlow } = slowDatabase();
    const send = makeBatcher({ together, groups: { groupOf, findFree: async () => [] }, calls_max: 2, slow_ms: 5 });
    const stuck = send(101);
    await expect.poll(() => calls.length).toBe(1);
    const behind = send(102);
    expect(await Promise.all([201, 202].map(send))).toEqual([402, 404]);
    expect(send.oldest_ms()).toBeGreaterThan(4);
    answerSlow();
    expect(await Promise.all([stuck, behind])).toEqual([202, 204]);
    expect(calls).toEqual([[101], [201, 202], [102]]);
    expect(send.oldest_ms()).toBe(0);
  });

  it('sends one call at a time unless more are permitted', async () => {
    const { calls, together, answerSlow } = slowDatabase();
    const send = makeBatcher({ together, slow_ms: 1 });
    const answers = [send(101)];
    await expect.poll(() => calls.length).toBe(1);
    answers.push(send(201));
    await new Promise((resolve) => setTimeout(resolve, 30));
    expect(calls).toEqual([[101]]);
    answerSlow();
    expect(await Promise.all(answers)).toEqual([202, 402]);
  });

  it('lets a group with locked rows wait by itself in its order, and continues with it when they are free', async () => {
    const { calls, together } = database();
    let held: string | undefined = '1';
    const send = makeBatcher({
      together: async (members: readonly number[]) => {
        if (members.some((n) => groupOf(n) === held)) throw refusal('55P03');
        return together(members);
      },
      groups: { groupOf, findFree: async (groups) => groups.filter((group) => group !== held) },
    });
    const waiting = [101, 102].map(send);
    expect(await Promise.all([201, 301].map(send))).toEqual([402, 602]);
    waiting.push(send(103));
    expect(await send(202)).toBe(404);
    held = undefined;
    expect(await Promise.all(waiting)).toEqual([202, 204, 206]);
    expect(calls).toEqual([[201, 301], [202], [101, 102, 103]]);
    expect(await send(104)).toBe(208);
  });

  it('reports to members of a group that stays locked, in time, and only to them', async () => {
    const { together } = database();
    const send = makeBatcher({
      together: async (members: readonly number[]) => {
        if (members.some((n) => groupOf(n) === '1')) throw refusal('55P03');
        return together(members);
      },
      groups: { groupOf, findFree: async (groups) => groups.filter((group) => group !== '1'), locked_max_ms: 20 },
    });
    const outcomes = await Promise.allSettled([101, 201, 102].map(send));
    expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'rejected']);
    await expect(send(103)).rejects.toMatchObject({ code: '55P03' });
  });
});

const groupOf = (n: number) => String(Math.floor(n / 100));

/** A database that answers n with 2n, but the first call only when it is told to. */
function slowDatabase() {
  const { calls, together } = database();
  const { promise, resolve } = Promise.withResolvers<void>();
  const slowly = async (members: readonly number[]) => {
    const answers = await together(members);
    if (calls.length === 1) await promise;
    return answers;
  };
  return { calls, together: slowly, answerSlow: resolve };
}
