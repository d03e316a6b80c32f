import type { Cost } from './common.ts';

export type LedgerType = 'topup' | 'hold' | 'release' | 'charge' | 'adjustment';

/** A movement, as the API tells it, and what it is about. */
export type LedgerLine = {
  id: string;
  type: LedgerType;
  direction: 'in' | 'out' | 'none';
  /** Without a sign: `direction` tells it. */
  amount: Cost;
  /** Available and held. */
  balance_after: Cost;
  available_after: Cost;
  held_after: Cost;
  reference_id: string;
  /** The kind of page that shows the cause. */
  cause: 'task' | 'chat' | null;
  key: { id: string; name: string } | null;
  model: string | null;
  reason: string | null;
  /** The person who booked it by hand, and the audit entry about it. */
  booked_by: { actor: string; audit_id: string } | null;
  /** On which invoice a charge stands. */
  invoice: string | null;
  created_at: string;
};

export type BillingDetailsView = {
  company: string;
  address: string;
  postal_code: string;
  city: string;
  country: string;
  tax_id: string;
  email: string;
};

export type BillingView = {
  details: BillingDetailsView;
  alert: { threshold: Cost | null; is_low: boolean };
  top_up:
    | { by: 'card'; smallest: string; largest: string }
    /** Whoever runs the service says how; null if they have not. */
    | { by: 'operator'; text: string | null };
};
