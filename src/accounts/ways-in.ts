import type { Queryable } from '../db/database.ts';

/** Ways to sign in that this service has now: providers of `auth.account`, and the host of the passkeys that work. */
export type UsableWays = { providers: readonly string[]; passkey_host: string | undefined };

/** Tells whether a person can sign in without the connection or the passkey of this id. */
export async function hasOtherWay(
  tx: Queryable,
  { user_id, but }: { user_id: string; but: string },
  { providers, passkey_host }: UsableWays,
): Promise<boolean> {
  const rows = await tx.query(
    `select 1 from auth.account where "userId" = $1 and id <> $2 and "providerId" = any($3)
     union all select 1 from passkeys where user_id = $1 and id <> $2 and host = $4 limit 1`,
    [user_id, but, providers, passkey_host ?? ''],
  );
  return rows.length > 0;
}
