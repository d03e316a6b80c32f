import { storedSetting } from '../../db/settings.ts';
import type { Db } from '../../db/database.ts';

/**
 * Authenticators of people: the login library encrypts their secrets and backup codes with the secret of the service. After
 * a change of that secret nobody with an authenticator could sign in, so that they are encrypted again.
 */

export type FactorParts = {
  readonly db: Db;
  /** The secret of the service: the operator's, else the one that the database has. */
  readonly secret: string;
  readonly config: { readonly secret_before: string | undefined };
};

/** `again`: those that lay under an earlier secret. `unreadable`: those that no secret of ours opens. */
export type FactorCounts = { again: number; unreadable: number };

const batch_max = 200;

type Row = { id: string; secret: string; codes: string };

/** Encrypts authenticators that lie under an earlier secret with the current one. */
export function encryptFactorsAgain(parts: FactorParts, stopped?: AbortSignal): Promise<FactorCounts> {
  return walk(
    parts,
    async (row, written) => {
      await parts.db.query(
        `update auth."twoFactor" set secret = $3, "backupCodes" = $5
        where id = $1 and secret = $2 and "backupCodes" = $4`, // what a person changed meanwhile stays
        [row.id, row.secret, written.secret, row.codes, written.codes],
      );
    },
    stopped,
  );
}

/** Counts authenticators that are not under the current secret. */
export function countFactors(parts: FactorParts): Promise<FactorCounts> {
  return walk(parts, async () => undefined);
}

/** Calls `take` for each row that an earlier secret opens, with what it is under the current one. */
async function walk(
  parts: FactorParts,
  take: (row: Row, written: { secret: string; codes: string }) => Promise<void>,
  stopped?: AbortSignal,
): Promise<FactorCounts> {
  const { db, secret } = parts;
  const counts = { again: 0, unreadable: 0 };
  const earlier = await earlierSecrets(parts);
  if (earlier.length === 0) return counts;
  const { symmetricEncrypt } = await import('better-auth/crypto');
  let after = '';
  while (stopped?.aborted !== true) {
    const rows: Row[] = await db.query<Row>(
      `select id, secret, "backupCodes" as codes from auth."twoFactor" where id > $1 order by id limit ${batch_max}`,
      [after],
    );
    for (const row of rows) {
      after = row.id;
      if ((await opened([secret], row.secret)) !== undefined) continue;
      const plain = await opened(earlier, row.secret);
      if (plain === undefined) {
        counts.unreadable += 1;
        continue;
      }
      const codes = await opened(earlier, row.codes);
      const written = {
        secret: await symmetricEncrypt({ key: secret, data: plain }),
        codes: codes === undefined ? row.codes : await symmetricEncrypt({ key: secret, data: codes }),
      };
      await take(row, written);
      counts.again += 1;
    }
    if (rows.length < batch_max) return counts;
  }
  return counts;
}

/** The secret before a change; and the one that the database has, which was in use until the operator set one. */
async function earlierSecrets({ db, secret, config }: FactorParts): Promise<string[]> {
  const stored = await storedSetting(db, 'secret');
  return [config.secret_before, stored].flatMap((each) => (each === undefined || each === secret ? [] : [each]));
}

/** Returns the text, if one of these secrets opens it. */
async function opened(secrets: readonly string[], data: string): Promise<string | undefined> {
  const { symmetricDecrypt } = await import('better-auth/crypto');
  for (const key of secrets) {
    try {
      return await symmetricDecrypt({ key, data });
    } catch {
      continue;
    }
  }
  return undefined;
}
