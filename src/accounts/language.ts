import type { Queryable } from '../db/database.ts';

/** Sets the language in which a person reads the dashboard; null follows the browser. */
export async function setLanguage(db: Queryable, user_id: string, language: string | null): Promise<void> {
  await db.query('update auth."user" set language = $2 where id = $1', [user_id, language]);
}
