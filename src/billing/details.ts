import type { Queryable } from '../db/database.ts';

/** The customer's details on invoices. Unknown ones are empty. */
export type BillingDetails = {
  company: string;
  address: string;
  postal_code: string;
  city: string;
  /** Two letters, ISO 3166-1. */
  country: string;
  tax_id: string;
  email: string;
};

export const no_details: BillingDetails = {
  company: '',
  address: '',
  postal_code: '',
  city: '',
  country: '',
  tax_id: '',
  email: '',
};

export async function findDetails(db: Queryable, account_id: string): Promise<BillingDetails | undefined> {
  const rows = await db.query<BillingDetails>(
    'select company, address, postal_code, city, country, tax_id, email from billing_details where account_id = $1',
    [account_id],
  );
  return rows[0];
}

/** Counts for invoices that are made from now on; those that are there never change. */
export async function setDetails(db: Queryable, account_id: string, details: BillingDetails, now: Date): Promise<void> {
  const { company, address, postal_code, city, country, tax_id, email } = details;
  await db.query(
    `insert into billing_details (account_id, company, address, postal_code, city, country, tax_id, email, updated_at)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
     on conflict (account_id) do update set company = excluded.company, address = excluded.address,
       postal_code = excluded.postal_code, city = excluded.city, country = excluded.country, tax_id = excluded.tax_id,
       email = excluded.email, updated_at = excluded.updated_at`,
    [account_id, company, address, postal_code, city, country, tax_id, email, now],
  );
}
