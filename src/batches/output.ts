import { stat } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Db } from '../db/database.ts';
import { keepFile, type FilesParts } from '../files/files.ts';
import { withSpool } from '../files/spool.ts';
import { assert } from '../lib/assert.ts';
import type { Batch } from './batches.ts';
import { listEnded, type EndedLine } from './lines.ts';

/** The files of a batch that has ended: answers, and what was no answer. */

/** The parts of the app that making them takes. */
export type OutputParts = FilesParts & { readonly db: Db; readonly config: { readonly data_dir: string } };

/** They belong to no upload of the account, and no limit may cost somebody answers that are paid for. */
const no_limits = { files_max: 2_147_483_647, bytes_max: Number.MAX_SAFE_INTEGER };

/** Makes both files; making them again makes the same ones. A file without lines is not made. */
export async function makeFiles(
  parts: OutputParts,
  batch: Batch,
  now: Date,
): Promise<{ has_output: boolean; has_errors: boolean }> {
  const { output_id, error_id } = batch;
  assert(output_id !== null && error_id !== null, 'files of a batch have ids before they are made');
  const has_output = await makeFile(parts, batch, { id: output_id, word: 'output', is_answered: true }, now);
  const has_errors = await makeFile(parts, batch, { id: error_id, word: 'errors', is_answered: false }, now);
  return { has_output, has_errors };
}

type Making = { id: string; word: string; is_answered: boolean };

async function makeFile(
  parts: OutputParts,
  batch: Batch,
  { id, word, is_answered }: Making,
  now: Date,
): Promise<boolean> {
  return withSpool(parts.config.data_dir, async (spool) => {
    const path = await spool.add((file) => pipeline(Readable.from(linesOf(parts.db, batch, is_answered)), file));
    const { size: size_bytes } = await stat(path);
    if (size_bytes === 0) return false;
    const { account_id, key_id } = batch;
    const stored = await keepFile(
      parts,
      {
        id,
        account_id,
        key_id,
        task_id: null,
        filename: `${batch.id}_${word}.jsonl`,
        purpose: 'batch_output',
        probe: { type: 'document', content_type: 'application/jsonl', extension: 'jsonl', size_bytes },
        content: path,
        expires_at: new Date(now.getTime() + Number(batch.keep_s) * 1000),
      },
      no_limits,
      now,
    );
    assert(typeof stored !== 'string', 'files of a batch are limited by nothing');
    return true;
  });
}

async function* linesOf(db: Db, batch: Batch, is_answered: boolean): AsyncGenerator<Buffer> {
  for (let after = 0; ;) {
    const page = await listEnded(db, batch, { after, is_answered });
    for (const line of page) yield* rendered(batch, line);
    const last = page.at(-1);
    if (!last) return;
    after = last.number;
  }
}

const messages: Record<string, string> = {
  batch_expired: 'This call was not made within the time of its batch.',
  batch_cancelled: 'The batch was cancelled before this call was made.',
  input_file_gone: 'The input file was deleted before this call was made.',
  api_key_ended: 'The API key of the batch has ended before this call was made.',
  server_error: 'The service failed at this call again and again. It costs nothing.',
};

/** A line with its body as it came: JSON has line breaks only where a space may be. */
function rendered(batch: Batch, line: EndedLine): Buffer[] {
  const { number, custom_id, request_id, status_code, result, error_code } = line;
  const id = `batch_req_${batch.id.slice('batch_'.length)}_${number}`;
  const head = `{"id":${JSON.stringify(id)},"custom_id":${JSON.stringify(custom_id)},"response":`;
  if (status_code === null || result === null) {
    const code = error_code ?? 'server_error';
    const error = { code, message: messages[code] ?? 'This call was not made.' };
    return [Buffer.from(`${head}null,"error":${JSON.stringify(error)}}\n`)];
  }
  const body = result.toString('utf8').replaceAll(/[\r\n]+/g, ' ');
  const response = `{"status_code":${status_code},"request_id":${JSON.stringify(request_id)},"body":${body}}`;
  return [Buffer.from(`${head}${response},"error":null}\n`)];
}
