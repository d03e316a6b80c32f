import { expect, it } from 'vitest';
import { makeBudget } from '../../src/lib/budget.ts';
import { makeGate } from '../../src/lib/gate.ts';

/** Lets every promise that can go on do so. */
const settle = () => new Promise((resolve) => setImmediate(resolve));

it('a gate lets so many in, and so many of one name; the others follow in their order', async () => {
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

it('a gate is free again after a failure', async () => {
  const gate = makeGate({ at_once: 1, at_once_per_name: 1 });
  await expect(gate.run('a', () => Promise.reject(new Error('no')))).rejects.toThrow('no');
  expect(await gate.run('a', async () => 'yes')).toBe('yes');
});

it('a budget makes wait who wants more than is left, and nobody overtakes', async () => {
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
