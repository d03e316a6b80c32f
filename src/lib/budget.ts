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
      let held = amount;
      const shrink = (to: number) => {
        const given = Math.max(0, held - to);
        held -= given;
        giveBack(given);
      };
      return { shrink, release: () => shrink(0) };
    },
  };
}
