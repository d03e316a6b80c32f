import type { Caller } from '../accounts/authenticate.ts';
import type { CatalogHolder } from '../catalog/catalog.ts';
import type { Db } from '../db/database.ts';
import { ApiError } from '../errors.ts';
import { joinParts, PartMissing } from '../files/assembly.ts';
import { findFile, keepFile, type CallerFile, type FileProblem } from '../files/files.ts';
import { withSpool } from '../files/spool.ts';
import type { TempFileParts } from '../files/temp-files.ts';
import { findUploadSession, removeParts, type UploadPart, type UploadSession } from '../files/upload-sessions.ts';
import { megabyte } from '../http/body.ts';
import { measureFile } from '../http/spooled-form.ts';
import type { Clock } from '../lib/clock.ts';
import { documentAt } from '../storage/document.ts';
import type { Prober } from '../storage/probe.ts';
import type { Storage } from '../storage/storage.ts';

/** Uploaded files on the way from the disk into the storage, whatever the way in which they came. */

/** The parts of the app that keeping files takes. */
export type KeepParts = TempFileParts & {
  readonly db: Db;
  readonly clock: Clock;
  readonly storage: Storage;
  readonly catalog: CatalogHolder;
  readonly prober: Prober;
};

/** A whole file on the disk. `field`: its name in errors. */
export type UploadedFile = {
  path: string;
  filename: string;
  purpose: string;
  keep_ms: number;
  field: string;
  name?: string | undefined;
  session_id?: string;
};

/** Measures a file and stores it for the account of the caller. Throws ApiError 413, 422, 409 for its name, 400 for its session. */
export async function keepUpload(app: KeepParts, caller: Caller, arrived: UploadedFile): Promise<CallerFile> {
  const { path, field, keep_ms, ...file } = arrived;
  const { account_bytes_max: bytes_max, account_files_max: files_max } = app.catalog.current.settings.files;
  const probe = (await documentAt(path, file.filename)) ?? (await measureFile(app, { caller }, path, field));
  const now = new Date(app.clock.now());
  const stored_file = await keepFile(
    app,
    {
      ...file,
      account_id: caller.account.id,
      key_id: caller.key.id,
      task_id: null,
      probe,
      content: path,
      expires_at: new Date(now.getTime() + keep_ms),
    },
    { files_max, bytes_max },
    now,
  );
  if (typeof stored_file === 'string') throw refusal(app, stored_file);
  return stored_file;
}

/** Returns the error for a file, or the beginning of one, that is not taken. */
export function refusal({ catalog }: Pick<KeepParts, 'catalog'>, problem: FileProblem): ApiError {
  const { account_bytes_max, account_files_max } = catalog.current.settings.files;
  if (problem === 'name_taken') {
    const message = 'Another file of the account has this name. Delete that one first, or choose another name.';
    return new ApiError('conflict', message, { code: 'already_exists', param: 'file.name' });
  }
  if (problem === 'ended') {
    return new ApiError('invalid_request', 'The upload has ended. Begin another one.', { code: 'upload_ended' });
  }
  const most = problem === 'too_many' ? `${account_files_max} files` : `${account_bytes_max / megabyte} MB of files`;
  const message = `The account may have at most ${most} at a time. Delete some, or let them expire sooner.`;
  return new ApiError('too_large', message, { code: 'files_limit' });
}

export function tooLargeFile({ catalog }: Pick<KeepParts, 'catalog'>): ApiError {
  const { file_bytes_max } = catalog.current.settings.files;
  return new ApiError('too_large', `A file may have at most ${file_bytes_max / megabyte} MB.`);
}

/** A session that is completed: its parts in their order, and the MD5 in hex that they should have. */
export type Completion = {
  session: UploadSession;
  parts: readonly UploadPart[];
  md5?: string | undefined;
  field: string;
};

/**
 * Joins the parts of a session to a file and stores it. The session ends with it: of several calls at once, at any nodes,
 * one makes the file and all answer it. The caller has a permit for temp files. Throws ApiError, and the session goes on.
 */
export async function completeSession(
  app: KeepParts,
  caller: Caller,
  { session, parts, md5, field }: Completion,
): Promise<CallerFile> {
  const { id: session_id, filename, purpose, name } = session;
  try {
    const file = await withSpool(app.config.data_dir, async (spool) => {
      const joined = await joinParts(app.storage, spool, parts);
      if (md5 !== undefined && joined.md5 !== md5) {
        const message = `md5 is not the one of the file, which is ${joined.md5}. Send the parts that differ again.`;
        throw new ApiError('invalid_request', message, { param: 'md5' });
      }
      const keep_ms = Number(session.keep_s) * 1000;
      const about = { filename, purpose, keep_ms, field, session_id };
      return keepUpload(app, caller, { ...about, path: joined.path, name: name ?? undefined });
    });
    await removeParts(app, session);
    return file;
  } catch (error) {
    const now_completed = await findUploadSession(app.db, session);
    const file = now_completed && (await fileOf(app, now_completed));
    if (file) return file; // another call was faster
    if (error instanceof PartMissing) throw partMissing();
    throw error;
  }
}

/** Its session has just ended, or nodes of the service have different storages. */
function partMissing(): ApiError {
  const message = 'A part of the upload is not in the storage of this server. Begin another upload.';
  return new ApiError('invalid_request', message, { code: 'upload_part_missing' });
}

/** Returns the file of a session that is completed, as long as it is there. */
export async function fileOf({ db, clock }: KeepParts, session: UploadSession): Promise<CallerFile | undefined> {
  const { account_id, file_id } = session;
  return file_id === null ? undefined : findFile(db, { account_id, id: file_id }, new Date(clock.now()));
}
