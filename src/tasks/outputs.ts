import type { App } from '../app.ts';
import { unitsOfOutputs, type Units } from '../catalog/price.ts';
import { failpoint } from '../lib/failpoint.ts';
import type { RunFile } from '../providers/provider.ts';
import { outputKey } from '../storage/key.ts';
import { makeLink } from '../storage/links.ts';
import { failed, type Probe, type ProbeResult } from '../storage/probe-result.ts';
import { probeMedia } from '../storage/probe.ts';
import type { OutputItem, StoredFile, Task } from './task.ts';

/** What a run produced, kept by us and measured; or why it is no output of this model. */
export type Outputs = { ok: true; files: StoredFile[]; units: Units } | { ok: false; problem: string };

const files_max = 16;
const file_bytes_max = 1_073_741_824;

/**
 * Copies the files of a run into our storage and measures them from their bytes. The storage keys
 * depend only on the task and the position, so a repeat after a crash overwrites and leaves nothing;
 * and nothing is stored unless all files are what they should be.
 */
export async function storeOutputs(app: App, task: Task, files: readonly RunFile[]): Promise<Outputs> {
  if (files.length === 0) return { ok: false, problem: 'the upstream returned no output' };
  if (files.length > files_max) return { ok: false, problem: `the upstream returned ${files.length} files` };
  const measured = [];
  for (const file of files) {
    const result = await measure(file);
    if (!result.ok)
      return { ok: false, problem: `the upstream returned a file that cannot be read: ${result.problem}` };
    const { probe } = result;
    if (probe.type !== task.kind)
      return { ok: false, problem: `the upstream returned ${probe.content_type} for ${task.kind}` };
    measured.push({ bytes: file.bytes, probe });
  }
  const stored: StoredFile[] = [];
  for (const [position, { bytes, probe }] of measured.entries()) {
    stored.push(await storeOutput(app, task, position, bytes, probe));
  }
  return { ok: true, files: stored, units: unitsOfOutputs(stored.map((file) => file.item)) };
}

/** Once more when it took too long or crashed: a busy machine does that, too. */
async function measure({ bytes }: RunFile): Promise<ProbeResult> {
  if (bytes.length > file_bytes_max) return failed('too_large', `${bytes.length} bytes`);
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
