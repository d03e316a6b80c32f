import fc from 'fast-check';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { Semaphore, type AcquireOptions, type Permit } from '../../src/concurrency/semaphore.ts';

afterEach(() => void vi.useRealTimers());

/** Lets every promise that can go on do so. */
const settle = () => new Promise((resolve) => setImmediate(resolve));

/** A semaphore, and what it admitted, in order. Each request is named by its key and its weight. */
function watched(options: ConstructorParameters<typeof Semaphore>[0]) {
  const semaphore = new Semaphore(options);
  const order: string[] = [];
  const take = async (key: string, weight = 1, more: AcquireOptions = {}): Promise<Permit> => {
    const permit = await semaphore.acquire(key, { weight, ...more });
    if (!permit) throw new Error('none');
    order.push(`${key}${weight}`);
    return permit;
  };
  return { semaphore, order, take };
}

const idle = ({ state: { in_use, waiting }, size }: Semaphore) => expect([in_use, waiting, size]).toEqual([0, 0, 0]);

describe('a semaphore', () => {
  it('admits a limited number, and a limited number per key, and the others follow', async () => {
    const { semaphore, order, take } = watched({ name: 'x', bound: 3, key_bound: 2 });
    const permits = ['a', 'a', 'a', 'b', 'b'].map((key) => take(key));
    await settle();
    expect(order).toEqual(['a1', 'a1', 'b1']);
    (await permits[3])?.release();
    await settle();
    expect(order).toEqual(['a1', 'a1', 'b1', 'b1']);
    (await permits[0])?.release();
    await settle();
    expect(order.at(-1)).toBe('a1');
    for (const permit of permits) (await permit).release();
    idle(semaphore);
  });

  it('has its permit back after a failure', async () => {
    const semaphore = new Semaphore({ name: 'x', bound: 1 });
    await expect(semaphore.run('a', () => Promise.reject(new Error('no')))).rejects.toThrow('no');
    expect(await semaphore.run('a', async () => 'yes')).toBe('yes');
  });

  it('gives a permit at once or not at all where nobody wants to wait', async () => {
    const semaphore = new Semaphore({ name: 'x', bound: 1 });
    const permit = semaphore.tryAcquire('a');
    expect(semaphore.tryAcquire('b')).toBeUndefined();
    const waiting = semaphore.acquire('b');
    permit?.release();
    expect(semaphore.tryAcquire('c')).toBeUndefined(); // b came first
    (await waiting)?.release();
    semaphore.tryAcquire('c')?.release();
    idle(semaphore);
  });

  it('gives a permit back once, however often it is released', () => {
    const semaphore = new Semaphore({ name: 'x', bound: 10 });
    const permit = semaphore.tryAcquire('a', 6);
    semaphore.tryAcquire('a', 4);
    permit?.shrink(9); // it has no more than 6
    permit?.shrink(2);
    expect(semaphore.state.in_use).toBe(6);
    permit?.release();
    permit?.release();
    permit?.shrink(1);
    expect(semaphore.state.in_use).toBe(4);
  });

  it('follows a bound per key that changes', () => {
    let key_bound = 1;
    const semaphore = new Semaphore({ name: 'x', key_bound: () => key_bound });
    expect([semaphore.tryAcquire('a'), semaphore.tryAcquire('a')]).toEqual([expect.anything(), undefined]);
    expect(semaphore.tryAcquire('b')).toBeDefined();
    key_bound = 2;
    expect(semaphore.tryAcquire('a')).toBeDefined();
    expect(semaphore.state).toMatchObject({ in_use: 3, bound: null, key_bound: 2 });
  });

  it('delays a request for more than is left, and no later one of its key overtakes it', async () => {
    const { semaphore, order, take } = watched({ name: 'x', bound: 10 });
    const six = await take('a', 6);
    const five = take('a', 5);
    const one = take('a', 1); // would fit, but is behind
    await settle();
    expect(order).toEqual(['a6']);
    six.shrink(2);
    await settle();
    expect(order).toEqual(['a6', 'a5', 'a1']);
    for (const permit of [six, await five, await one]) permit.release();
    const all = await take('a', 10);
    const more = take('a', 99); // as much as there is
    all.release();
    (await more).release();
    expect(order).toEqual(['a6', 'a5', 'a1', 'a10', 'a99']);
    idle(semaphore);
  });

  it('says what it holds', async () => {
    const semaphore = new Semaphore({ name: 'Memory', unit: 'bytes', bound: 10, key_bound: 'fair' });
    semaphore.tryAcquire('a', 5);
    void semaphore.acquire('a', { weight: 1 });
    expect(semaphore.state).toEqual({
      name: 'Memory',
      unit: 'bytes',
      in_use: 5,
      waiting: 1,
      bound: 10,
      key_bound: 'fair',
    });
    expect([semaphore.waiting('a'), semaphore.waiting('b'), semaphore.size]).toEqual([1, 0, 1]);
    expect(new Semaphore({ name: 'x' }).state).toMatchObject({ unit: null, bound: null, key_bound: null });
  });
});

describe('a request for a permit', () => {
  it('ends when its signal is aborted, and leaves its place to the next', async () => {
    const { semaphore, order, take } = watched({ name: 'x', bound: 1 });
    const first = await take('a');
    const gone = new AbortController();
    const leaves = semaphore.acquire('a', { signal: gone.signal });
    const next = take('a');
    gone.abort();
    expect(await leaves).toBeUndefined();
    expect(await semaphore.acquire('b', { signal: gone.signal })).toBeUndefined();
    first.release();
    (await next).release();
    expect(order).toHaveLength(2);
    idle(semaphore);
  });

  it('is no longer cancelled by its signal when it has its permit', async () => {
    const { semaphore, take } = watched({ name: 'x', bound: 1 });
    const first = await take('a');
    const gone = new AbortController();
    const served = take('a', 1, { signal: gone.signal });
    const waiting = take('a');
    first.release();
    const permit = await served;
    gone.abort();
    expect(semaphore.state).toMatchObject({ in_use: 1, waiting: 1 });
    permit.release();
    (await waiting).release();
    idle(semaphore);
  });

  it('ends when its time is over', async () => {
    vi.useFakeTimers();
    const semaphore = new Semaphore({ name: 'x', bound: 1 });
    const permit = semaphore.tryAcquire('a');
    const late = semaphore.acquire('a', { timeout_ms: 1_000 });
    const patient = semaphore.acquire('b', { timeout_ms: 5_000 });
    await vi.advanceTimersByTimeAsync(1_000);
    expect(await late).toBeUndefined();
    expect(semaphore.state.waiting).toBe(1);
    permit?.release();
    const last = await patient;
    await vi.advanceTimersByTimeAsync(10_000);
    last?.release();
    expect(vi.getTimerCount()).toBe(0);
    idle(semaphore);
  });

  it('that is cancelled costs its key no turn', async () => {
    const { order, take, semaphore } = watched({ name: 'x', bound: 1 });
    const permit = semaphore.tryAcquire('x');
    const gone = new AbortController();
    const waiting = [semaphore.acquire('a', { signal: gone.signal }), take('a'), take('b'), take('a')];
    gone.abort();
    permit?.release();
    for (const each of waiting.slice(1)) (await each)?.release();
    expect(order).toEqual(['a1', 'b1', 'a1']);
  });

  it('is refused at once where too many wait', async () => {
    const semaphore = new Semaphore({ name: 'x', bound: 1, queue_bound: 2 });
    const permit = semaphore.tryAcquire('a');
    const waiting = [semaphore.acquire('a'), semaphore.acquire('b')];
    expect(await semaphore.acquire('c')).toBeUndefined();
    permit?.release();
    for (const each of waiting) (await each)?.release();
    idle(semaphore);
  });

  it('is cancelled with all others of its key', async () => {
    const { semaphore, order, take } = watched({ name: 'x', bound: 2 });
    const first = await take('a', 1);
    const ended: number[] = [];
    const cancelled = [2, 1].map((weight) => semaphore.acquire('a', { weight }).finally(() => ended.push(weight)));
    const other = take('b', 2);
    semaphore.cancelWaiting('a'); // the second would fit as soon as the first is gone
    semaphore.cancelWaiting('none');
    expect(await Promise.all(cancelled)).toEqual([undefined, undefined]);
    expect(ended).toEqual([2, 1]);
    first.release();
    (await other).release();
    expect(order).toEqual(['a1', 'b2']);
    idle(semaphore);
  });
});

describe('a fair semaphore', () => {
  it('leaves room for the next key, however many of one key there are', async () => {
    const { semaphore, order, take } = watched({ name: 'x', bound: 8, key_bound: 'fair' });
    const many = Array.from({ length: 6 }, () => take('a'));
    const others = ['b', 'b', 'b', 'c'].map((key) => take(key));
    await settle();
    expect(order.toSorted()).toEqual(['a1', 'a1', 'a1', 'a1', 'b1', 'b1', 'c1']); // of 4 free b had 2, of 2 free c 1
    expect(semaphore.waiting('a')).toBe(2);
    (await many[0])?.release();
    await settle();
    expect(order).toHaveLength(7); // 3 of a, 2 are free
    (await others[0])?.release();
    await settle();
    expect(order.at(-1)).toBe('b1'); // it has fewer than a
    for (const permit of others) (await permit).release();
    await settle();
    expect(order.filter((key) => key === 'a1')).toHaveLength(5); // half of all, now that it is alone
    for (const permit of [...many, ...others]) (await permit).release();
    idle(semaphore);
  });

  it('may admit two for one permit that is released', async () => {
    const { order, take } = watched({ name: 'x', bound: 8, key_bound: 'fair' });
    const six = await take('a', 6);
    const waiting = [take('b', 3), take('c', 2)];
    await settle();
    expect(order).toEqual(['a6', 'c2']);
    six.release();
    await Promise.all(waiting);
    expect(order).toEqual(['a6', 'c2', 'b3']);
  });

  it('leaves as much as one key has, and drops requests that are cancelled', async () => {
    const { semaphore, order, take } = watched({ name: 'x', bound: 100, key_bound: 'fair' });
    const first = await take('a', 30);
    const second = await take('a', 20); // 50 of 100
    const gone = new AbortController();
    const waits = take('a', 10);
    const leaves = semaphore.acquire('a', { signal: gone.signal });
    const other = await take('b', 40); // 10 are left
    const least = await take('c', 10);
    gone.abort();
    expect(await leaves).toBeUndefined();
    expect(order).toEqual(['a30', 'a20', 'b40', 'c10']);
    other.shrink(5);
    await settle();
    expect(order).toHaveLength(4); // a would have 60, and 35 would be left
    first.release();
    for (const permit of [second, other, least, await waits]) permit.release();
    (await take('a', 999)).release(); // as much as there is
    expect(order).toEqual(['a30', 'a20', 'b40', 'c10', 'a10', 'a999']);
    idle(semaphore);
  });

  it('admits each key in order of arrival, and keys that hold nothing first', async () => {
    const { semaphore, order, take } = watched({ name: 'x', bound: 100, key_bound: 'fair' });
    const first = await take('a', 30);
    const other = await take('b', 30);
    const large = take('c', 60); // has nothing, and 40 are left
    const small = take('b', 1); // would fit, but c has nothing
    const none = take('d', 5); // has nothing, and fits
    const again = take('a', 40);
    const behind = take('a', 1); // its account has asked for 40 before
    await settle();
    expect(order).toEqual(['a30', 'b30', 'd5']);
    other.release();
    await large;
    await settle();
    expect(order).toEqual(['a30', 'b30', 'd5', 'c60', 'b1']);
    (await large).release();
    first.release();
    await Promise.all([again, behind]);
    expect(order.slice(5)).toEqual(['a40', 'a1']);
    for (const permit of [none, small, again, behind]) (await permit).release();
    (await take('e', 100)).release();
    idle(semaphore);
  });

  it('continues when a request that blocked others is cancelled', async () => {
    const { semaphore, order, take } = watched({ name: 'x', bound: 100, key_bound: 'fair' });
    await take('a', 30);
    const gone = new AbortController();
    const large = semaphore.acquire('b', { weight: 90, signal: gone.signal });
    const waits = take('a', 1);
    await settle();
    expect(order).toEqual(['a30']);
    gone.abort();
    expect(await large).toBeUndefined();
    expect(await waits).toBeDefined();
  });

  it('lets no request starve, however many new keys come with small ones', async () => {
    const { order, take } = watched({ name: 'x', bound: 100, key_bound: 'fair' });
    const first = await take('a', 50);
    const large = take('b', 60);
    const small: Promise<Permit>[] = [];
    for (let i = 0; i < 40; i++) {
      small.push(take(`n${i}`, 10));
      await settle();
      void small[small.length - 5]?.then((permit) => permit.release()); // five are there at any time
    }
    expect(order).toHaveLength(7); // 60 of weight have overtaken it, and no more do
    first.release();
    expect(await large).toBeDefined();
    expect(order.indexOf('b60')).toBe(7);
  });
});

type Step = { do: 'acquire'; key: string; weight: number } | { do: 'cancel' | 'shrink' | 'release'; nth: number };

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    do: fc.constant('acquire' as const),
    key: fc.constantFrom('a', 'b', 'c', 'd'),
    weight: fc.integer({ min: 1, max: 6 }),
  }),
  fc.record({ do: fc.constantFrom('cancel' as const, 'shrink' as const, 'release' as const), nth: fc.nat(40) }),
);

const bounds = fc.record({
  bound: fc.integer({ min: 6, max: 12 }),
  key_bound: fc.constantFrom<number | 'fair' | undefined>(undefined, 'fair', 6, 8),
});

type Held = { key: string; weight: number; permit: Permit };

/** Carries out the steps, and looks at the semaphore after each. */
async function play(
  semaphore: Semaphore,
  steps: readonly Step[],
  look: (held: readonly Held[], waiting: readonly { key: string }[]) => void,
): Promise<void> {
  const held: Held[] = [];
  const waiting: { key: string; cancel: () => void }[] = [];
  let is_in_order = true;
  const end = (list: Held[], nth: number) => list.splice(nth % list.length, 1)[0]?.permit.release();
  const acquire = async (key: string, weight: number) => {
    const controller = new AbortController();
    const request = { key, cancel: () => controller.abort() };
    waiting.push(request);
    const permit = await semaphore.acquire(key, { weight, signal: controller.signal });
    const at = waiting.indexOf(request);
    is_in_order &&= !permit || waiting.findIndex((other) => other.key === key) === at;
    waiting.splice(at, 1);
    if (permit) held.push({ key, weight, permit });
  };
  for (const each of steps) {
    if (each.do === 'acquire') void acquire(each.key, each.weight);
    else if (each.do === 'cancel') waiting[each.nth % waiting.length]?.cancel();
    else if (each.do === 'release') end(held, each.nth);
    else {
      const one = held[each.nth % held.length];
      if (one && one.weight > 1) one.permit.shrink((one.weight -= 1));
    }
    await settle();
    look(held, waiting);
  }
  while (held.length > 0) {
    end(held, 0);
    await settle();
  }
  expect([waiting, is_in_order]).toEqual([[], true]);
}

const sum = (held: readonly Held[]) => held.reduce((all, { weight }) => all + weight, 0);

describe('after any requests, cancellations and releases', () => {
  it('a semaphore is never above its bounds, loses no permit, and serves each key in order', async () => {
    await fc.assert(
      fc.asyncProperty(bounds, fc.array(step, { maxLength: 40 }), async ({ bound, key_bound }, steps) => {
        const semaphore = new Semaphore({ name: 'x', bound, ...(key_bound !== undefined && { key_bound }) });
        await play(semaphore, steps, (held, waiting) => {
          expect(semaphore.state).toMatchObject({ in_use: sum(held), waiting: waiting.length });
          expect(sum(held)).toBeLessThanOrEqual(bound);
          if (typeof key_bound !== 'number') return;
          for (const key of ['a', 'b', 'c', 'd'])
            expect(sum(held.filter((one) => one.key === key))).toBeLessThanOrEqual(key_bound);
        });
        idle(semaphore);
        expect(semaphore.tryAcquire('e', Math.min(bound, Number(key_bound) || bound))).toBeDefined();
      }),
      { numRuns: 300 },
    );
  });

  it('no key waits for more than one full round of the others', async () => {
    const keys = ['a', 'b', 'c', 'd'];
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 4 }),
        fc.array(fc.constantFrom(...keys), { maxLength: 40 }),
        async (bound, requests) => {
          const { semaphore, order, take } = watched({ name: 'x', bound });
          const permits = requests.map((key) => take(key));
          for (const permit of permits) void permit.then(({ release }) => setImmediate(release));
          await Promise.all(permits);
          const left = [...requests];
          for (const [at, key] of order.map((name) => name.slice(0, 1)).entries()) {
            left.splice(left.indexOf(key), 1);
            for (const other of new Set(left)) {
              const served = order.slice(0, at + 1).map((name) => name.slice(0, 1));
              const since = at < bound ? [] : served.slice(Math.max(bound, served.lastIndexOf(other) + 1));
              for (const each of keys) expect(since.filter((one) => one === each).length).toBeLessThanOrEqual(1);
            }
          }
          await settle();
          idle(semaphore);
        },
      ),
      { numRuns: 300 },
    );
  });
});
