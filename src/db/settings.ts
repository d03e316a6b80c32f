import type { Queryable } from './database.ts';

/** The stored value of `name`; made by `make` if there is none. All nodes get the same one. */
export async function settingOnce(db: Queryable, name: string, make: () => string): Promise<string> {
  const inserted = await db.query<{ value: string }>(
    `insert into settings (name, value) values ($1, $2) on conflict (name) do nothing returning value`,
    [name, make()],
  );
  const rows =
    inserted.length > 0
      ? inserted
      : await db.query<{ value: string }>('select value from settings where name = $1', [name]);
  const row = rows[0];
  if (!row) throw new Error(`the setting ${name} vanished`);
  return row.value;
}

/** The stored value of `name`; undefined if there is none. */
export async function storedSetting(db: Queryable, name: string): Promise<string | undefined> {
  const [row] = await db.query<{ value: string }>('select value from settings where name = $1', [name]);
  return row?.value;
}
