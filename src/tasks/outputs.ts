import type { App } from '../app.ts';
import { unitsOfOutputs, type Units } from '../catalog/price.ts';
import { contentOf, withSpool, type Spool } from '../files/spool.ts';
import { failpoint } from '../lib/failpoint.ts';
import { GuardError } from '../net/guard.ts';
import type { RemoteFile, RunFile, TextFile } from '../providers/provider.ts';
import { storageKey } from '../storage/key.ts';
import { makeLink } from '../storage/links.ts';
import { mediaType, textExtension, type Extension } from '../storage/media-types.ts';
import { failed } from '../storage/probe-result.ts';
import { probeAgain } from '../storage/probe.ts';
import type { OutputItem, StoredFile, Task } from './task.ts';

/**
 * What a run produced, kept by us and measured; or why not: `unusable` is no output of this model,
 * `unfetched` may be had at the next try.
 */
export type Outputs =
  | { state: 'stored'; files: StoredFile[]; units: Units }
  | { state: 'unusable' | 'unfetched'; problem: string };

/** Where files come from. */
export type Origin = {
  /** Its configuration says which addresses its result links may have. */
  provider: string;
  /** Breaks downloads off. */
  stopped: AbortSignal;
};

const files_max = 16;

/** Of one file, and of all files of a run together: they are twice on the disk while they are stored. */
const file_bytes_max = 1_073_741_824;

/** Ten minutes are a gigabyte at 1.8 MB/s. A link that stops sending is asked for again by the next poll. */
const download_limits = {
  connect_timeout_ms: 10_000,
  idle_timeout_ms: 30_000,
  timeout_ms: 600_000,
  redirects_max: 3,
};

/**
 * Copies the files of a run into our storage and measures them from their bytes. The storage keys
 * depend only on the task and the position, so a repeat after a crash overwrites and leaves nothing;
 * and nothing is stored unless all files are what they should be.
 */
export async function storeOutputs(app: App, task: Task, files: readonly RunFile[], origin: Origin): Promise<Outputs> {
  if (files.length === 0) return unusable('the upstream returned no output');
  if (files.length > files_max) return unusable(`the upstream returned ${files.length} files`);
  return withSpool(app.config.data_dir, async (spool) => {
    const measured = await measureAll(app, task, files, { ...origin, spool });
    if ('state' in measured) return measured;
    const stored: StoredFile[] = [];
    for (const [position, output] of measured.entries()) stored.push(await storeOutput(app, task, position, output));
    return { state: 'stored', files: stored, units: unitsOfOutputs(stored.map((file) => file.item)) };
  });
}

/** A file in memory or at a path, and what is told of it. */
type Measured = { content: Buffer | string; extension: Extension; item: StoredFile['item'] };

type Fetching = Origin & { spool: Spool };

async function measureAll(
  app: App,
  task: Task,
  files: readonly RunFile[],
  fetching: Fetching,
): Promise<Measured[] | Outputs> {
  const types = outputTypes(app, task);
  const measured: Measured[] = [];
  let left_bytes = file_bytes_max;
  for (const file of files) {
    const result = 'text' in file ? readText(file) : await readMedia(app, file, fetching, left_bytes);
    if ('state' in result) return result;
    const { type, content_type, size_bytes } = result.item;
    if (!types.includes(type)) return unusable(`the upstream returned ${content_type} for ${types.join(', ')}`);
    left_bytes -= size_bytes;
    measured.push(result);
  }
  return measured;
}

/** What the model makes; of one that is not offered any more, what it can have made. */
function outputTypes(app: App, task: Task): readonly string[] {
  return app.catalog.current.models.get(task.model)?.output_types ?? [task.kind, 'text'];
}

/** Longer texts are told by their link alone: they would be sent with every webhook and every look at the task. */
const told_text_bytes_max = 65_536;

/** JSON and the database could not keep more in one piece; an hour of speech has 60 kB. */
const text_bytes_max = 20_000_000;

function readText({ text, content_type }: TextFile): Measured | Outputs {
  const plain = text.toWellFormed().replaceAll('\0', ''); // as the database can keep it
  const bytes = Buffer.from(plain);
  if (bytes.length > text_bytes_max) return unusable(`the upstream returned a text of ${bytes.length} bytes`);
  const extension = textExtension(content_type);
  const item = {
    type: 'text' as const,
    content_type: mediaType(extension).content_type,
    size_bytes: bytes.length,
    ...(bytes.length <= told_text_bytes_max && { text: plain }),
  };
  return { content: bytes, extension, item };
}

async function readMedia(
  app: App,
  file: Exclude<RunFile, TextFile>,
  fetching: Fetching,
  bytes_max: number,
): Promise<Measured | Outputs> {
  const content = 'bytes' in file ? file.bytes : await download(app, file, fetching, bytes_max);
  if (typeof content === 'object' && 'state' in content) return content;
  const too_large = Buffer.isBuffer(content) && content.length > bytes_max;
  const result = too_large ? failed('too_large', 'more than a gigabyte') : await probeAgain(content);
  if (!result.ok) return unusable(`the upstream returned a file that cannot be read: ${result.problem}`);
  const { extension, ...item } = result.probe;
  return { content, extension, item };
}

function unusable(problem: string): Outputs & { state: 'unusable' } {
  return { state: 'unusable', problem };
}

/** The path of what is behind a result link, or why there is none. */
async function download(
  app: App,
  { url, credentials }: RemoteFile,
  { provider, stopped, spool }: Fetching,
  size_bytes_max: number,
): Promise<string | Outputs> {
  const rules = app.addressRules();
  const trusted = app.catalog.current.providers.get(provider)?.allow_private ?? false;
  const may_have_key = credentials && URL.canParse(url) && new URL(url).origin === credentials.origin;
  const options = {
    ...download_limits,
    rules: { ...rules, allow_private: rules.allow_private || trusted },
    headers: may_have_key ? credentials.headers : {},
    size_bytes_max,
    signal: stopped,
  };
  try {
    return await spool.add((file) => app.guard.save(url, file, options));
  } catch (error) {
    if (stopped.aborted) return { state: 'unfetched', problem: 'this worker is stopping' };
    if (!(error instanceof GuardError)) throw error;
    const problem = `result link: ${error.message} (${error.code})`;
    const is_final = error.code === 'address_refused' || error.code === 'too_large';
    return { state: is_final ? 'unusable' : 'unfetched', problem };
  }
}

async function storeOutput(app: App, task: Task, position: number, output: Measured): Promise<StoredFile> {
  const { content, extension, item } = output;
  const key = storageKey({ account_id: task.account_id, owner_id: task.id, index: position, extension });
  await app.storage.put(key, contentOf(content), { content_type: item.content_type, size_limit_bytes: file_bytes_max });
  await failpoint('task.copying');
  return { key, item };
}

/** Output items with links that are valid from `now` for the configured time. */
export function linkOutputs(app: App, files: readonly StoredFile[], now: Date): OutputItem[] {
  const expires_at_ms = now.getTime() + app.catalog.current.settings.outputs.link_ttl_ms;
  return files.map(({ key, item }) => {
    const { type, content_type, size_bytes, ...measures } = item;
    const { url, expires_at } = makeLink(app.secret, { base_url: app.base_url(), key, expires_at_ms });
    return { type, url, content_type, size_bytes, ...measures, expires_at };
  });
}
