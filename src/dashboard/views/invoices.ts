import type { Page } from './activity.ts';
import type { Cost } from './common.ts';

export type InvoiceLineView = {
  /** MED-2026-0001. */
  number: string;
  /** The month's first invoice, if this one adds what was charged after that was made. */
  supplement_to: string | null;
  /** 2026-11. */
  month: string;
  issued_at: string;
  total: Cost;
};

/** `issues`: the operator has said who issues invoices, so there will be some. */
export type InvoicesView = Page<InvoiceLineView> & { issues: boolean };
