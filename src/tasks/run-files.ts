import { mergeUnits } from '../catalog/merge-units.ts';
import { unitsOfOutputs, type Pricing, type Units } from '../catalog/price.ts';
import type { AddressRules } from '../net/address.ts';
import { GuardError, type DownloadOptions } from '../net/guard.ts';
import type { RemoteFile, RunFile, TextFile } from '../providers/provider.ts';
import { mediaType, textExtension, type Extension } from '../storage/media-types.ts';
import { failed } from '../storage/probe-result.ts';
import type { Prober } from '../storage/probe.ts';
import type { StoredFile } from './task.ts';

/** The files of a run: fetched and measured, for tasks and for test calls of operators. */

/** A file in memory or where `fetch` put it, and what is told of it. */
export type MeasuredFile<Place> = { content: Buffer | Place; extension: Extension; item: StoredFile['item'] };

/**
 * The reason why there are no files: `unusable` is no output of this model, `unfetched` may be fetched at the
 * next attempt.
 */
export type NoFiles = { state: 'unusable' | 'unfetched'; problem: string };

export type RunFileOptions<Place> = {
  prober: Pick<Prober, 'probeAgain'>;
  /** Output types of the model. */
  types: readonly string[];
  /** Which addresses result links may have. */
  rules: AddressRules;
  /** Breaks downloads off. */
  stopped: AbortSignal;
  /** Gets what is behind a link. Rejects with GuardError. */
  fetch: (url: string, options: DownloadOptions) => Promise<Place>;
};

const files_max = 16;

/** The size of one file, and of all files of a run together: they are twice on the disk while they are stored. */
export const file_bytes_max = 1_073_741_824;

/** Ten minutes are a gigabyte at 1.8 MB/s. A link that stops sending is asked for again by the next poll. */
const download_limits = {
  connect_timeout_ms: 10_000,
  idle_timeout_ms: 30_000,
  timeout_ms: 600_000,
  redirects_max: 3,
};

/** Gets all files of a run and measures them from their bytes; nothing of them is used unless all are what they should be. */
export async function measureFiles<Place extends string | Buffer>(
  files: readonly RunFile[],
  reading: RunFileOptions<Place>,
): Promise<MeasuredFile<Place>[] | NoFiles> {
  if (files.length === 0) return unusable('the upstream returned no output');
  if (files.length > files_max) return unusable(`the upstream returned ${files.length} files`);
  const measured: MeasuredFile<Place>[] = [];
  let left_bytes = file_bytes_max;
  for (const file of files) {
    const result = 'text' in file ? readText(file) : await readMedia(file, reading, left_bytes);
    if ('state' in result) return result;
    const { type, content_type, size_bytes } = result.item;
    if (!reading.types.includes(type))
      return unusable(`the upstream returned ${content_type} for ${reading.types.join(', ')}`);
    left_bytes -= size_bytes;
    measured.push(result);
  }
  return measured;
}

/** Returns the units to charge for a run: measured on its files, else as the upstream reports them. */
export function unitsOfRun(
  reported: Units | undefined,
  { input_units }: Pick<Pricing, 'input_units'>,
  outputs: readonly Pick<MeasuredFile<unknown>, 'item'>[],
): Units {
  return mergeUnits(reported ?? {}, input_units ?? {}, unitsOfOutputs(outputs.map(({ item }) => item)));
}

/** Longer texts are told by their link alone: they would be sent with every webhook and every look at the task. */
const reported_text_bytes_max = 65_536;

/** JSON and the database could not keep more in one piece; an hour of speech has 60 kB. */
const text_bytes_max = 20_000_000;

function readText({ text, content_type }: TextFile): MeasuredFile<never> | NoFiles {
  const plain = text.toWellFormed().replaceAll('\0', ''); // as the database can keep it
  const bytes = Buffer.from(plain);
  if (bytes.length > text_bytes_max) return unusable(`the upstream returned a text of ${bytes.length} bytes`);
  const extension = textExtension(content_type);
  const item = {
    type: 'text' as const,
    content_type: mediaType(extension).content_type,
    size_bytes: bytes.length,
    ...(bytes.length <= reported_text_bytes_max && { text: plain }),
  };
  return { content: bytes, extension, item };
}

async function readMedia<Place extends string | Buffer>(
  file: Exclude<RunFile, TextFile>,
  reading: RunFileOptions<Place>,
  bytes_max: number,
): Promise<MeasuredFile<Place> | NoFiles> {
  const content = 'bytes' in file ? file.bytes : await download(file, reading, bytes_max);
  if (typeof content === 'object' && 'state' in content) return content;
  const too_large = Buffer.isBuffer(content) && content.length > bytes_max;
  const result = too_large ? failed('too_large', 'more than a gigabyte') : await reading.prober.probeAgain(content);
  if (!result.ok) return unusable(`the upstream returned a file that cannot be read: ${result.problem}`);
  const { extension, ...item } = result.probe;
  return { content, extension, item };
}

function unusable(problem: string): NoFiles {
  return { state: 'unusable', problem };
}

/** Downloads a result link, or returns the reason why it cannot. */
async function download<Place>(
  { url, credentials }: RemoteFile,
  { rules, stopped, fetch }: RunFileOptions<Place>,
  size_bytes_max: number,
): Promise<Place | NoFiles> {
  const may_have_key = credentials && URL.canParse(url) && new URL(url).origin === credentials.origin;
  const headers = may_have_key ? credentials.headers : {};
  try {
    return await fetch(url, { ...download_limits, rules, headers, size_bytes_max, signal: stopped });
  } catch (error) {
    if (stopped.aborted) return { state: 'unfetched', problem: 'this worker is stopping' };
    if (!(error instanceof GuardError)) throw error;
    const problem = `result link: ${error.message} (${error.code})`;
    const is_final = error.code === 'address_refused' || error.code === 'too_large';
    return { state: is_final ? 'unusable' : 'unfetched', problem };
  }
}
