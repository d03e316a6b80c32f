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
 * has nothing has whatever is left. What waits is let in by name in the order of coming, and before all others who has
 * nothing: a large wish among small ones would wait for ever.
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
  const hasNothing = (name: string) => !shares.has(name);
  const fits = ({ name, amount }: Wish) => {
    const own = shares.get(name) ?? 0;
    return amount <= left && (own === 0 || own + amount <= left - amount);
  };
  const mustWait = (wish: Wish) => {
    if (!fits(wish)) return true;
    for (const { name } of waiting) if (name === wish.name || (hasNothing(name) && !hasNothing(wish.name))) return true;
    return false;
  };
  const change = (name: string, by: number) => {
    left -= by;
    const own = (shares.get(name) ?? 0) + by;
    if (own > 0) shares.set(name, own);
    else shares.delete(name);
  };
  const letIn = () => {
    const passed_over = new Set<string>();
    for (const with_nothing of [true, false]) {
      for (const waiter of waiting) {
        const { name, amount, begin } = waiter;
        if (passed_over.has(name) || hasNothing(name) !== with_nothing) continue;
        if (fits(waiter)) {
          change(name, amount); // at once: whoever comes now must not take it
          begin();
        } else passed_over.add(name);
      }
      if (passed_over.size > 0) return;
    }
  };
  const giveBack = (name: string, amount: number) => {
    change(name, -amount);
    letIn();
  };
  const turnOf = (wish: Wish, signal: AbortSignal) =>
    new Promise<void>((resolve, reject) => {
      const leave = () => {
        waiting.delete(waiter);
        signal.removeEventListener('abort', stop);
      };
      const stop = () => {
        leave();
        reject(signal.reason);
        letIn(); // it may have been in the way
      };
      const begin = () => {
        leave();
        resolve();
      };
      const waiter = { ...wish, begin };
      waiting.add(waiter);
      signal.addEventListener('abort', stop);
    });
  return {
    async take(name, wanted, signal) {
      const wish = { name, amount: Math.min(wanted, total) };
      signal.throwIfAborted();
      if (mustWait(wish)) await turnOf(wish, signal);
      else change(name, wish.amount);
      return shareOf(wish.amount, (amount) => giveBack(name, amount));
    },
  };
}

function shareOf(amount: number, giveBack: (amount: number) => void): Share {
  let held = amount;
  const shrink = (to: number) => {
    const returned = Math.max(0, held - to);
    held -= returned;
    giveBack(returned);
  };
  return { shrink, release: () => shrink(0) };
}
