/** So much of something, shared by many; who wants more than is left waits, in the order of coming. */
export type Budget = { take(amount: number): Promise<Share> };

/** Give back what is not needed after all, then the rest. */
export type Share = { shrink(amount: number): void; release(): void };

export function makeBudget(total: number): Budget {
  let left = total;
  const waiting: { amount: number; begin: () => void }[] = [];
  const giveBack = (amount: number) => {
    left += amount;
    for (let first = waiting[0]; first && first.amount <= left; first = waiting[0]) {
      waiting.shift();
      left -= first.amount; // at once: whoever comes now must not take it
      first.begin();
    }
  };
  return {
    async take(wanted) {
      const amount = Math.min(wanted, total); // more than there is would wait for ever
      if (waiting.length === 0 && amount <= left) left -= amount;
      else await new Promise<void>((begin) => waiting.push({ amount, begin }));
      return shareOf(amount, giveBack);
    },
  };
}

/**
 * A budget of which a name has at most as much as is left: one alone has half of it, two have a third each, and who
 * has nothing has whatever is left.
 */
export type FairBudget = {
  /** Waits until there is room. Rejects with the reason of `signal`. */
  take(name: string, amount: number, signal: AbortSignal): Promise<Share>;
};

type Wish = { name: string; amount: number };

export function makeFairBudget(total: number): FairBudget {
  const shares = new Map<string, number>();
  const waiting = new Set<Wish & { begin: () => void }>();
  let left = total;
  const fits = ({ name, amount }: Wish) => {
    const own = shares.get(name) ?? 0;
    return amount <= left && (own === 0 || own + amount <= left - amount);
  };
  const change = (name: string, by: number) => {
    left -= by;
    const own = (shares.get(name) ?? 0) + by;
    if (own > 0) shares.set(name, own);
    else shares.delete(name);
  };
  const giveBack = (name: string, amount: number) => {
    change(name, -amount);
    for (const waiter of waiting) {
      if (!fits(waiter)) continue;
      change(waiter.name, waiter.amount); // at once: whoever comes now must not take it
      waiter.begin();
    }
  };
  const turnOf = (wish: Wish, signal: AbortSignal) =>
    new Promise<void>((resolve, reject) => {
      const settle = (done: () => void) => () => {
        waiting.delete(waiter);
        signal.removeEventListener('abort', stop);
        done();
      };
      const stop = settle(() => reject(signal.reason));
      const waiter = { ...wish, begin: settle(resolve) };
      waiting.add(waiter);
      signal.addEventListener('abort', stop);
    });
  return {
    async take(name, wanted, signal) {
      const wish = { name, amount: Math.min(wanted, total) };
      signal.throwIfAborted();
      if (fits(wish)) change(name, wish.amount);
      else await turnOf(wish, signal);
      return shareOf(wish.amount, (amount) => giveBack(name, amount));
    },
  };
}

function shareOf(amount: number, giveBack: (amount: number) => void): Share {
  let held = amount;
  const shrink = (to: number) => {
    const given = Math.max(0, held - to);
    held -= given;
    giveBack(given);
  };
  return { shrink, release: () => shrink(0) };
}
