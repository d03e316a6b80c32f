import type { Queryable } from '../db/database.ts';
import { findFile, findFileByName, type CallerFile } from '../files/files.ts';
import type { Caller } from './authenticate.ts';
import { reaches } from './limited-keys.ts';

/** Uploads that a caller reaches: of another account, or out of reach of the key, one is as unknown as one that never was. */

/** Returns an upload by its id; undefined where there is none, also for a file of a task's input. */
export async function findUpload(
  db: Queryable,
  caller: Caller,
  id: string,
  now: Date,
): Promise<CallerFile | undefined> {
  return ifReached(db, caller, await findFile(db, { account_id: caller.account.id, id }, now));
}

/** Returns an upload by the name that it was given; undefined where there is none. */
export async function findUploadByName(
  db: Queryable,
  caller: Caller,
  name: string,
  now: Date,
): Promise<CallerFile | undefined> {
  return ifReached(db, caller, await findFileByName(db, caller.account.id, name, now));
}

async function ifReached(db: Queryable, caller: Caller, file: CallerFile | undefined): Promise<CallerFile | undefined> {
  if (!file || file.task_id !== null) return undefined;
  return (await reaches(db, caller, file.key_id)) ? file : undefined;
}
