import { createHash } from 'node:crypto';

/** An endless row of numbers from 0 to 1 (exclusive), the same for the same text. */
export type Chance = {
  /** The next number, scaled to [low, high). */
  between(low: number, high: number): number;
  /** One of `choices`. */
  pick<T>(choices: readonly [T, ...T[]]): T;
};

/** Chance seeded by SHA-256 of `text`; the generator is sfc32. */
export function chanceFrom(text: string): Chance {
  const hash = createHash('sha256').update(text).digest();
  let [a, b, c, d] = [hash.readInt32LE(0), hash.readInt32LE(4), hash.readInt32LE(8), hash.readInt32LE(12)];
  const next = () => {
    const sum = (((a + b) | 0) + d) | 0;
    d = (d + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = ((c << 21) | (c >>> 11)) + sum;
    return (sum >>> 0) / 2 ** 32;
  };
  return {
    between: (low, high) => low + next() * (high - low),
    pick: (choices) => choices[Math.floor(next() * choices.length)] ?? choices[0],
  };
}
