import { readContent, storeContent, type ContentKeys, type StoredContent } from '../../db/content.ts';
import type { Db, Queryable } from '../../db/database.ts';
import type { ModelEntry, PriceEntry, ProviderEntry } from '../schema.ts';

/** The rows of what operators add in the dashboard. A key is stored encrypted, and no row that is shown has it. */

export type AddedProvider = {
  name: string;
  /** The preset or the shipped provider that it is; null: an address of the operator's own. */
  preset: string | null;
  /** As in medley.yaml, without a key. */
  entry: ProviderEntry;
  last_four: string | null;
  /** Begins the ids of its models. */
  prefix: string;
  margin: string;
  is_off: boolean;
};

export type AddedModel = {
  id: string;
  provider: string;
  /** At the provider's own prices; null for one of the default catalogue. */
  entry: ModelEntry | null;
  /** Its id in the default catalogue. */
  shipped: string | null;
  margin: string | null;
  price: PriceEntry[] | null;
};

/**
 * `keys`: by name of the provider; undefined where the secret that encrypts it is not there. `ignores_keys`: of a command
 * without MEDLEY_SECRET, in which that says nothing of the service.
 */
export type AddedCatalog = {
  readonly providers: readonly AddedProvider[];
  readonly models: readonly AddedModel[];
  readonly keys: ReadonlyMap<string, string | undefined>;
  readonly ignores_keys?: boolean;
};

export const nothing_added: AddedCatalog = { providers: [], models: [], keys: new Map() };

const provider_columns = 'name, preset, entry, last_four, prefix, margin, is_off';
const model_columns = 'id, provider, entry, shipped, margin, price';

/** Lists the providers, the oldest first. */
export async function listAddedProviders(db: Queryable): Promise<AddedProvider[]> {
  return db.query<AddedProvider>(`select ${provider_columns} from added_providers order by created_at, name`);
}

/** Lists the models, the oldest first. */
export async function listAddedModels(db: Queryable): Promise<AddedModel[]> {
  return db.query<AddedModel>(`select ${model_columns} from added_models order by created_at, id`);
}

/** Changes with every change of a row; a few bytes, since every node asks once a second. */
export async function versionOfAdded(db: Queryable): Promise<string> {
  const rows = await db.query<{ version: string }>(
    `select md5(coalesce((select string_agg(name || xmin::text, ',' order by name) from added_providers), '') || '/' ||
                coalesce((select string_agg(id || xmin::text, ',' order by id) from added_models), '')) as version`,
  );
  return rows[0]?.version ?? '';
}

/** Everything that is added, with the keys that can be read. `is_command`: it is no service that asks. */
export async function readAdded(
  db: Db,
  content_keys: ContentKeys,
  { is_command = false }: { is_command?: boolean } = {},
): Promise<AddedCatalog> {
  const [providers, models, stored] = await Promise.all([
    listAddedProviders(db),
    listAddedModels(db),
    db.query<StoredKey>('select name, key_id, api_key as content from added_providers where api_key is not null'),
  ]);
  const keys = new Map<string, string | undefined>();
  for (const row of stored) keys.set(row.name, await openKey(content_keys, row));
  return { providers, models, keys, ignores_keys: is_command && content_keys.current === undefined };
}

type StoredKey = StoredContent & { name: string };

/** Content that was damaged or moved to another row is as unreadable as one under a secret that is gone. */
async function openKey(keys: ContentKeys, { name, ...stored }: StoredKey): Promise<string | undefined> {
  try {
    const text = await readContent(keys, placeOf(name), stored, key_bytes_max);
    const value: unknown = text === undefined ? undefined : JSON.parse(text);
    return typeof value === 'string' ? value : undefined;
  } catch {
    return undefined;
  }
}

const key_bytes_max = 65_536;

function placeOf(name: string): string {
  return `provider ${name}`;
}

export type NewProvider = Omit<AddedProvider, 'last_four' | 'is_off'> & { api_key: string | undefined };

/** Adds a provider; false if there is one of this name. */
export async function addProvider(db: Queryable, keys: ContentKeys, added: NewProvider, now: Date): Promise<boolean> {
  const { name, preset, entry, prefix, margin, api_key } = added;
  const stored = await sealedKey(keys, name, api_key);
  const rows = await db.query(
    `insert into added_providers (name, preset, entry, key_id, api_key, last_four, prefix, margin, created_at, updated_at)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9) on conflict (name) do nothing returning name`,
    [name, preset, JSON.stringify(entry), stored.key_id, stored.content, stored.last_four, prefix, margin, now],
  );
  return rows.length > 0;
}

async function sealedKey(keys: ContentKeys, name: string, api_key: string | undefined) {
  if (api_key === undefined) return { key_id: null, content: null, last_four: null };
  const stored = await storeContent(keys, placeOf(name), JSON.stringify(api_key));
  return { ...stored, last_four: api_key.slice(-4) };
}

export type ProviderChange = Partial<Pick<AddedProvider, 'entry' | 'margin' | 'is_off'>> & { api_key?: string };

/** Changes what is given; false if there is no such provider. */
export async function changeProvider(
  db: Queryable,
  keys: ContentKeys,
  name: string,
  { entry, margin, is_off, api_key }: ProviderChange,
  now: Date,
): Promise<boolean> {
  const stored = await sealedKey(keys, name, api_key);
  const rows = await db.query(
    `update added_providers set entry = coalesce($2, entry), margin = coalesce($3, margin), is_off = coalesce($4, is_off),
            key_id = case when $6::bytea is null then key_id else $5 end, api_key = coalesce($6, api_key),
            last_four = coalesce($7, last_four), updated_at = $8
      where name = $1 returning name`,
    [
      name,
      entry === undefined ? null : JSON.stringify(entry),
      margin ?? null,
      is_off ?? null,
      stored.key_id,
      stored.content,
      stored.last_four,
      now,
    ],
  );
  return rows.length > 0;
}

/** Removes a provider with its models; false if there is none. */
export async function removeProvider(db: Queryable, name: string): Promise<boolean> {
  return (await db.query('delete from added_providers where name = $1 returning name', [name])).length > 0;
}

/** Adds models in their order; those of the same provider and id are replaced. Returns the ids of others, which stay. */
export async function addModels(db: Queryable, models: readonly AddedModel[], now: Date): Promise<string[]> {
  const rows = await db.query<{ id: string }>(
    `insert into added_models (id, provider, entry, shipped, margin, price, created_at, updated_at)
     select m.id, m.provider, m.entry, m.shipped, m.margin, m.price, $2, $2
       from json_to_recordset($1::json)
            as m (id text, provider text, entry json, shipped text, margin text, price json)
     on conflict (id) do update set entry = excluded.entry, shipped = excluded.shipped, margin = excluded.margin,
            price = excluded.price, updated_at = $2
      where added_models.provider = excluded.provider
     returning id`,
    [JSON.stringify(models), now],
  );
  const added = new Set(rows.map(({ id }) => id));
  return models.flatMap(({ id }) => (added.has(id) ? [] : [id]));
}

/** Sets the entry, the margin and the price of a model; null takes one back. False if there is no such model. */
export async function changeModel(
  db: Queryable,
  { id, entry, margin, price }: Pick<AddedModel, 'id' | 'entry' | 'margin' | 'price'>,
  now: Date,
): Promise<boolean> {
  const json = (value: object | null) => (value === null ? null : JSON.stringify(value));
  const rows = await db.query(
    'update added_models set entry = $2, margin = $3, price = $4, updated_at = $5 where id = $1 returning id',
    [id, json(entry), margin, json(price), now],
  );
  return rows.length > 0;
}

/** Removes models; returns the ids of those that were there. */
export async function removeModels(db: Queryable, ids: readonly string[]): Promise<string[]> {
  const rows = await db.query<{ id: string }>('delete from added_models where id = any($1) returning id', [ids]);
  return rows.map(({ id }) => id);
}

/** Counts stored keys by the key that they are encrypted with, null for those that are plain. */
export async function countKeys(db: Db): Promise<Map<string | null, number>> {
  const rows = await db.query<{ key_id: string | null; count: number }>(
    'select key_id, count(*)::int as count from added_providers where api_key is not null group by key_id',
  );
  return new Map(rows.map(({ key_id, count }) => [key_id, count]));
}

/** Encrypts the keys that lie under another secret, or under none, with the current one. Returns how many. */
export async function encryptKeysAgain(db: Db, keys: ContentKeys): Promise<number> {
  const current = keys.current?.id ?? null;
  const rows = await db.query<StoredKey>(
    `select name, key_id, api_key as content from added_providers
      where api_key is not null and key_id is distinct from $1`,
    [current],
  );
  let changed = 0;
  for (const row of rows) {
    const api_key = await openKey(keys, row);
    if (api_key === undefined) continue;
    const stored = await sealedKey(keys, row.name, api_key);
    await db.query(
      `update added_providers set key_id = $2, api_key = $3 where name = $1 and api_key = $4`, // one that came meanwhile stays
      [row.name, stored.key_id, stored.content, row.content],
    );
    changed += 1;
  }
  return changed;
}
