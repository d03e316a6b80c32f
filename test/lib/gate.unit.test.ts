import { expect, it } from 'vitest';
import { makeBudget, makeFairBudget } from '../../src/lib/budget.ts';
import { makeFairGate, makeGate } from '../../src/lib/gate.ts';

/** Lets every promise that can go on do so. */
const settle = () => new Promise((resolve) => setImmediate(resolve));

it('a semaphore admits a limited number, and a limited number per key, and the others follow in order', async () => {
  const gate = makeGate({ at_once: 3, at_once_per_name: 2 });
  const running: string[] = [];
  const ends = new Map<string, () => void>();
  const begin = (name: string, label: string) =>
    gate.run(name, () => {
      running.push(label);
      return new Promise<void>((end) => ends.set(label, end));
    });
  const all = [begin('a', 'a1'), begin('a', 'a2'), begin('a', 'a3'), begin('b', 'b1'), begin('b', 'b2')];
  await settle();
  expect(running).toEqual(['a1', 'a2', 'b1']);
  ends.get('b1')?.();
  await settle();
  expect(running).toEqual(['a1', 'a2', 'b1', 'b2']);
  ends.get('a1')?.();
  await settle();
  expect(running.at(-1)).toBe('a3');
  for (const end of ends.values()) end();
  await Promise.all(all);
});

it('a semaphore has its permit back after a failure', async () => {
  const gate = makeGate({ at_once: 1, at_once_per_name: 1 });
  await expect(gate.run('a', () => Promise.reject(new Error('no')))).rejects.toThrow('no');
  expect(await gate.run('a', async () => 'yes')).toBe('yes');
});

it('a fair semaphore leaves room for the next key, however many of one key there are', async () => {
  const gate = makeFairGate(8);
  const ends: (() => void)[] = [];
  const running: string[] = [];
  const begin = (name: string) =>
    gate.runWithin(100, name, () => {
      running.push(name);
      return new Promise<string>((resolve) => ends.push(() => resolve(name)));
    });
  const many = Array.from({ length: 6 }, () => begin('a'));
  const others = ['b', 'b', 'b', 'c'].map(begin);
  await settle();
  expect(running.toSorted()).toEqual(['a', 'a', 'a', 'a', 'b', 'b', 'c']); // of 4 free b had 2, of 2 free c 1
  expect(gate.waiting('a')).toBe(2);
  ends[0]?.(); // an a
  await settle();
  expect(running).toHaveLength(7); // 3 of a, 2 are free
  for (const end of ends.slice(4)) end();
  await settle();
  expect(running.filter((name) => name === 'a')).toHaveLength(5); // the first that waited
  expect(running.filter((name) => name === 'b')).toHaveLength(3);
  const left = await Promise.all([many[5], gate.runWithin(1, 'a', async () => 'never')]);
  expect(left).toEqual([undefined, undefined]);
  expect(gate.waiting('a')).toBe(0);
  for (const end of ends) end();
  await Promise.all([...many, ...others]);
  expect(await gate.run('a', async () => 'free')).toBe('free');
});

it('a released permit of a fair semaphore may admit two', async () => {
  const gate = makeFairGate(9);
  const ends: (() => void)[] = [];
  const running: string[] = [];
  const begin = (name: string) =>
    gate.run(name, () => {
      running.push(name);
      return new Promise<void>((end) => ends.push(end));
    });
  const all = ['a', 'b', 'a', 'b', 'a', 'b', 'b', 'a'].map(begin); // three each, three are free
  await settle();
  expect(running.join('')).toBe('ababab');
  ends[0]?.(); // an a: four are free, then a b comes and three are, beside two of a
  await settle();
  expect(running.join('')).toBe('abababba');
  for (const end of ends) end();
  await Promise.all(all);
});

it('a dismissed caller no longer waits, except one that would wait forever', async () => {
  const gate = makeGate({ at_once: 1, at_once_per_name: 1 });
  const { promise, resolve } = Promise.withResolvers<string>();
  const first = gate.run('a', () => promise);
  const later = [gate.runWithin(60_000, 'a', async () => 'late'), gate.runWithin(60_000, 'b', async () => 'b')];
  const last = gate.run('a', async () => 'last');
  gate.dismiss('a');
  expect(await later[0]).toBeUndefined();
  resolve('first');
  expect(await Promise.all([first, later[1], last])).toEqual(['first', 'b', 'last']);
});

it('a quota delays a request for more than is left, and no later one overtakes it', async () => {
  const budget = makeBudget(10);
  const order: number[] = [];
  const take = async (amount: number) => {
    const share = await budget.take(amount);
    order.push(amount);
    return share;
  };
  const six = await take(6);
  const five = take(5);
  const one = take(1); // would fit, but stands behind
  await settle();
  expect(order).toEqual([6]);
  six.shrink(2);
  await settle();
  expect(order).toEqual([6, 5, 1]);
  six.release();
  six.release(); // once more is nothing
  (await five).release();
  (await one).release();
  const all = await take(10);
  const more = take(99); // as much as there is
  all.release();
  (await more).release();
  expect(order).toEqual([6, 5, 1, 10, 99]);
});

/** One of 100, and what was let in, in its order. */
function fairBudget() {
  const budget = makeFairBudget(100);
  const never = new AbortController().signal;
  const order: string[] = [];
  const take = async (name: string, amount: number, signal = never) => {
    const share = await budget.take(name, amount, signal);
    order.push(`${name}${amount}`);
    return share;
  };
  return { take, order };
}

it('a fair quota leaves as much as one key has, and drops requests that no longer wait', async () => {
  const { take, order } = fairBudget();
  const first = await take('a', 30);
  const second = await take('a', 20); // 50 of 100
  const gone = new AbortController();
  const waits = take('a', 10);
  const leaves = take('a', 1, gone.signal);
  const other = await take('b', 40); // 10 are left
  const least = await take('c', 10);
  gone.abort(new Error('gone'));
  await expect(leaves).rejects.toThrow('gone');
  await expect(take('d', 1, gone.signal)).rejects.toThrow('gone');
  expect(order).toEqual(['a30', 'a20', 'b40', 'c10']);
  other.shrink(5);
  await settle();
  expect(order).toHaveLength(4); // a would have 60, and 35 would be left
  first.release();
  first.release(); // once more is nothing
  expect(await waits).toBeDefined();
  for (const share of [second, other, least, await waits]) share.release();
  const all = await take('a', 999); // as much as there is
  all.release();
  expect(order).toEqual(['a30', 'a20', 'b40', 'c10', 'a10', 'a999']);
});

it('a fair quota admits per key in order of arrival, and keys that hold nothing first', async () => {
  const { take, order } = fairBudget();
  const first = await take('a', 30);
  const other = await take('b', 30);
  const large = take('c', 60); // has nothing, and 40 are left
  const small = take('b', 1); // would fit, but c has nothing
  const none = await take('d', 5); // has nothing, and fits
  const again = take('a', 40);
  const behind = take('a', 1); // its account has asked for 40 before
  await settle();
  expect(order).toEqual(['a30', 'b30', 'd5']);
  other.release();
  expect(await large).toBeDefined();
  await settle();
  expect(order).toEqual(['a30', 'b30', 'd5', 'c60', 'b1']);
  (await large).release();
  first.release();
  expect(await Promise.all([again, behind])).toHaveLength(2);
  expect(order.slice(5)).toEqual(['a40', 'a1']);
  for (const share of [none, await small, await again, await behind]) share.release();
  expect(await take('e', 100)).toBeDefined();
});

it('a fair quota continues when a request that blocked others is cancelled', async () => {
  const { take, order } = fairBudget();
  await take('a', 30);
  const gone = new AbortController();
  const large = take('b', 90, gone.signal);
  const waits = take('a', 1);
  await settle();
  expect(order).toEqual(['a30']);
  gone.abort(new Error('gone'));
  await expect(large).rejects.toThrow('gone');
  expect(await waits).toBeDefined();
});
