import { countFactors, type FactorParts } from '../accounts/sign-in/factor-secrets.ts';
import { countKeys } from '../catalog/added/rows.ts';
import { countByKey } from '../conversations/content-keys.ts';
import type { Config } from '../config.ts';
import type { ContentKeys } from '../db/content.ts';
import { counted } from '../lib/counted.ts';

type SecretParts = FactorParts & {
  readonly config: Pick<Config, 'secret' | 'secret_before'>;
  readonly content_keys: ContentKeys;
};

/** Says which of what is encrypted is not under MEDLEY_SECRET, and whether MEDLEY_SECRET_BEFORE can go. */
export async function examineSecret(parts: SecretParts): Promise<{ ok: boolean; detail: string }> {
  const { db, config, content_keys } = parts;
  const current = content_keys.current?.id;
  const before = content_keys.readable.find(({ id }) => id !== current)?.id;
  const factors = await countFactors(parts);
  const counts = { before: factors.again, unreadable: factors.unreadable, plain: 0 };
  for (const by_key of [await countByKey(db, current), await countKeys(db)]) {
    for (const [key_id, count] of by_key) {
      if (key_id === null) counts.plain += count;
      else if (key_id === before) counts.before += count;
      else if (key_id !== current) counts.unreadable += count;
    }
  }
  // A shell of the operator's may lack what the service has.
  if (config.secret === undefined) return { ok: true, detail: withoutSecret(counts.unreadable) };
  const details = [
    ...(counts.unreadable === 0 ? [] : [unreadable(counts.unreadable)]),
    ...(counts.plain === 0 ? [] : [`${entries(counts.plain)} not encrypted yet: a worker does it within minutes`]),
    ...beforeLines(counts.before, config.secret_before !== undefined && before !== undefined),
  ];
  const detail = details.length === 0 ? 'whatever is encrypted is so with MEDLEY_SECRET' : details.join('; ');
  return { ok: counts.unreadable === 0, detail };
}

function entries(count: number): string {
  return counted(count, 'entry', 'entries');
}

function withoutSecret(unreadable_count: number): string {
  if (unreadable_count === 0) return 'MEDLEY_SECRET is not set: stored content and keys of providers lie as they are';
  return `MEDLEY_SECRET is not set here; ${entries(unreadable_count)} encrypted with one`;
}

function unreadable(count: number): string {
  return `${entries(count)} cannot be read: set the secret that they are encrypted with as MEDLEY_SECRET_BEFORE`;
}

function beforeLines(count: number, is_set: boolean): string[] {
  if (count > 0)
    return [
      `${entries(count)} still encrypted with an earlier secret: a worker encrypts them again within minutes; leave MEDLEY_SECRET_BEFORE set until then`,
    ];
  return is_set
    ? ['nothing is encrypted with MEDLEY_SECRET_BEFORE any more: it can go once every process has the new secret']
    : [];
}
