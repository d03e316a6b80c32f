import type { App } from '../app.ts';
import { unitsOfOutputs, type Units } from '../catalog/price.ts';
import { failpoint } from '../lib/failpoint.ts';
import { GuardError } from '../lib/guard.ts';
import type { RemoteFile, RunFile } from '../providers/provider.ts';
import { outputKey } from '../storage/key.ts';
import { makeLink } from '../storage/links.ts';
import { failed, type Probe, type ProbeResult } from '../storage/probe-result.ts';
import { probeMedia } from '../storage/probe.ts';
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

/** Of one file, and of all files of a run together: they are in memory until all have been measured. */
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
  const measured = [];
  let left_bytes = file_bytes_max;
  for (const file of files) {
    const bytes = 'bytes' in file ? file.bytes : await download(app, file, origin, left_bytes);
    if (!Buffer.isBuffer(bytes)) return bytes;
    left_bytes -= bytes.length;
    const result = left_bytes < 0 ? failed('too_large', 'more than a gigabyte') : await measure(bytes);
    if (!result.ok) return unusable(`the upstream returned a file that cannot be read: ${result.problem}`);
    const { probe } = result;
    if (probe.type !== task.kind) return unusable(`the upstream returned ${probe.content_type} for ${task.kind}`);
    measured.push({ bytes, probe });
  }
  const stored: StoredFile[] = [];
  for (const [position, { bytes, probe }] of measured.entries()) {
    stored.push(await storeOutput(app, task, position, bytes, probe));
  }
  return { state: 'stored', files: stored, units: unitsOfOutputs(stored.map((file) => file.item)) };
}

function unusable(problem: string): Outputs & { state: 'unusable' } {
  return { state: 'unusable', problem };
}

/** The bytes behind a result link, or why there are none. */
async function download(
  app: App,
  { url, credentials }: RemoteFile,
  { provider, stopped }: Origin,
  size_bytes_max: number,
): Promise<Buffer | Outputs> {
  const rules = app.addressRules();
  const trusted = app.catalog.current.providers.get(provider)?.allow_private ?? false;
  const may_have_key = credentials && URL.canParse(url) && new URL(url).origin === credentials.origin;
  try {
    const { bytes } = await app.guard.download(url, {
      ...download_limits,
      rules: { ...rules, allow_private: rules.allow_private || trusted },
      headers: may_have_key ? credentials.headers : {},
      size_bytes_max,
      signal: stopped,
    });
    return bytes;
  } catch (error) {
    if (stopped.aborted) return { state: 'unfetched', problem: 'this worker is stopping' };
    if (!(error instanceof GuardError)) throw error;
    const problem = `result link: ${error.message} (${error.code})`;
    const is_final = error.code === 'address_refused' || error.code === 'too_large';
    return { state: is_final ? 'unusable' : 'unfetched', problem };
  }
}

/** Once more when it took too long or crashed: a busy machine does that, too. */
async function measure(bytes: Buffer): Promise<ProbeResult> {
  const first = await probeMedia(bytes);
  const uncertain = !first.ok && (first.reason === 'timeout' || first.reason === 'crashed');
  return uncertain ? probeMedia(bytes) : first;
}

async function storeOutput(app: App, task: Task, position: number, bytes: Buffer, probe: Probe): Promise<StoredFile> {
  const { type, content_type, width, height, duration } = probe;
  const key = outputKey({ account_id: task.account_id, task_id: task.id, index: position, extension: probe.extension });
  await app.storage.put(key, bytes, { content_type, size_limit_bytes: file_bytes_max });
  await failpoint('task.copying');
  const measures = {
    ...(width !== undefined && { width }),
    ...(height !== undefined && { height }),
    ...(duration !== undefined && { duration }),
  };
  return { key, item: { type, content_type, size_bytes: bytes.length, ...measures } };
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
