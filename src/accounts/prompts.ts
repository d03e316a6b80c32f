import { isDuplicate, type Queryable } from '../db/database.ts';
import { newId } from '../lib/ids.ts';

/** A prompt in its latest version, or in the one that was asked for. `body` is JSON. */
export type SavedPrompt = { id: string; name: string; version: number; latest: number; body: string; updated_at: Date };

export type PromptLine = { id: string; name: string; version: number; updated_at: Date };

export type PromptVersion = { version: number; created_at: Date; author: string | null };

export const prompts_max = 200;
const prompt_versions_max = 100;

/** Returns the prompts of an account, by name. */
export async function listPrompts(db: Queryable, account_id: string): Promise<PromptLine[]> {
  return db.query<PromptLine>(
    'select id, name, version, updated_at from prompts where account_id = $1 order by lower(name), name',
    [account_id],
  );
}

/** Returns a prompt; undefined if the account has no such prompt, or it has that version no longer. */
export async function findPrompt(
  db: Queryable,
  { account_id, id, version }: { account_id: string; id: string; version?: number | undefined },
): Promise<SavedPrompt | undefined> {
  const rows = await db.query<SavedPrompt>(
    `select p.id, p.name, v.version, p.version as latest, v.body, v.created_at as updated_at
       from prompts p join prompt_versions v on v.prompt_id = p.id and v.version = coalesce($3, p.version)
      where p.account_id = $1 and p.id = $2`,
    [account_id, id, version ?? null],
  );
  return rows[0];
}

/** A version of a prompt; `prompt` is its JSON. */
export type PromptRecord = {
  id: string;
  name: string;
  version: number;
  created_at: Date;
  author: string | null;
  prompt: unknown;
};

/** Reads every version of the prompts of an account, one at a time: the prompts by name, the oldest version first. */
export async function* allPrompts(db: Queryable, account_id: string): AsyncGenerator<PromptRecord> {
  for (const { id, name } of await listPrompts(db, account_id)) {
    for (const { version, author, created_at } of (await listVersions(db, id)).toReversed()) {
      const saved = await findPrompt(db, { account_id, id, version });
      if (saved) yield { id, name, version, created_at, author, prompt: JSON.parse(saved.body) };
    }
  }
}

/** Latest first. */
export async function listVersions(db: Queryable, prompt_id: string): Promise<PromptVersion[]> {
  return db.query<PromptVersion>(
    `select v.version, v.created_at, u.name as author
       from prompt_versions v left join auth."user" u on u.id = v.user_id
      where v.prompt_id = $1 order by v.version desc`,
    [prompt_id],
  );
}

type NewPrompt = { account_id: string; user_id: string; name: string; body: string };

export type PromptRefusal = 'name taken' | 'too many';

/** Saves the first version. */
export async function createPrompt(
  db: Queryable,
  { account_id, user_id, name, body }: NewPrompt,
  now: Date,
): Promise<{ id: string } | PromptRefusal> {
  const id = newId('prompt', now.getTime());
  const [row] = await db.query<{ is_full: boolean; is_new: boolean }>(
    `with full_account as (select count(*) >= ${prompts_max} as is_full from prompts where account_id = $2),
     added as (
       insert into prompts (id, account_id, name, version, created_at, updated_at)
       select $1, $2, $3, 1, $6, $6 from full_account where not is_full
       on conflict (account_id, name) do nothing returning id
     ),
     first_version as (
       insert into prompt_versions (prompt_id, version, body, user_id, created_at)
       select id, 1, $4, $5, $6 from added returning prompt_id
     )
     select is_full, exists (select from first_version) as is_new from full_account`,
    [id, account_id, name, body, user_id, now],
  );
  if (row?.is_new) return { id };
  return row?.is_full ? 'too many' : 'name taken';
}

/** Saves another version, and forgets the oldest beyond the last 100. Undefined if the account has no such prompt. */
export async function addVersion(
  db: Queryable,
  { account_id, id, user_id, body }: Omit<NewPrompt, 'name'> & { id: string },
  now: Date,
): Promise<number | undefined> {
  const [row] = await db.query<{ version: number }>(
    `with changed as (
       update prompts set version = version + 1, updated_at = $5 where id = $1 and account_id = $2 returning id, version
     ),
     added as (
       insert into prompt_versions (prompt_id, version, body, user_id, created_at)
       select id, version, $3, $4, $5 from changed returning version
     ),
     removed as (
       delete from prompt_versions v using changed c
        where v.prompt_id = c.id and v.version <= c.version - ${prompt_versions_max}
     )
     select version from added`,
    [id, account_id, body, user_id, now],
  );
  return row?.version;
}

/** Gives it another name: its versions and its link stay. Undefined if the account has no such prompt. */
export async function renamePrompt(
  db: Queryable,
  { account_id, id, name }: { account_id: string; id: string; name: string },
): Promise<'renamed' | 'name taken' | undefined> {
  try {
    const rows = await db.query('update prompts set name = $3 where id = $1 and account_id = $2 returning id', [
      id,
      account_id,
      name,
    ]);
    return rows.length === 1 ? 'renamed' : undefined;
  } catch (error) {
    if (isDuplicate(error)) return 'name taken';
    throw error;
  }
}

/** Removes a prompt with its versions. One that is not there is no failure. */
export async function removePrompt(
  db: Queryable,
  { account_id, id }: { account_id: string; id: string },
): Promise<void> {
  await db.query('delete from prompts where id = $1 and account_id = $2', [id, account_id]);
}
