import type { Money } from './money.ts';

/**
 * An upstream's charge for a run or a call, and its basis. `told`: reported by the upstream. `rows`: the
 * route's cost rows by units that were reported or measured. `counted`: the same, but some units were counted
 * here. `free`: the upstream confirmed that it charges nothing. `unknown`: it may have charged something.
 */
export type UpstreamCharge =
  | {
      basis: 'told' | 'rows' | 'counted' | 'free';
      /** In the currency of the account. */
      cost: Money;
      /** The same in the base currency, which is `currency`. */
      base: Money;
      currency: string;
    }
  | { basis: 'unknown' };

/** A charge, and whose. */
export type UpstreamUse = UpstreamCharge & { provider: string; route: string };

/** The same in JSON, where amounts are texts. */
export type StoredUse =
  | { basis: 'unknown'; provider: string; route: string }
  | {
      basis: Exclude<UpstreamUse['basis'], 'unknown'>;
      provider: string;
      route: string;
      cost: string | bigint;
      base: string | bigint;
      currency: string;
    };

/** Returns what an upstream is owed, of its form in JSON. */
export function readUse(use: StoredUse): UpstreamUse {
  return use.basis === 'unknown' ? use : { ...use, cost: BigInt(use.cost), base: BigInt(use.base) };
}

/** Renders a cost as close_hold takes it. Amounts are texts: a JSON number of sixteen digits would not survive. */
export function useRecord(use: UpstreamCharge | UpstreamUse | undefined): object | null {
  if (use === undefined) return null;
  return use.basis === 'unknown' ? use : { ...use, cost: String(use.cost), base: String(use.base) };
}
