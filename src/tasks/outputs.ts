import type { App } from '../app.ts';
import { unitsOfOutputs, type Units } from '../catalog/price.ts';
import { failpoint } from '../lib/failpoint.ts';
import type { RunFile } from '../providers/provider.ts';
import { makeLink } from '../storage/links.ts';
import { probeMedia } from '../storage/probe.ts';
import type { OutputItem, StoredFile, Task } from './task.ts';

/** What a run produced, kept by us and measured; or why it is no output of this model. */
export type Outputs = { ok: true; files: StoredFile[]; units: Units } | { ok: false; problem: string };

const files_max = 16;
const file_bytes_max = 1_073_741_824;

/**
 * Copies the files of a run into our storage and measures them from their bytes. The storage keys
 * depend only on the task and the position, so a repeat after a crash overwrites and leaves nothing.
 */
export async function storeOutputs(app: App, task: Task, files: RunFile[]): Promise<Outputs> {
  if (files.length === 0) return { ok: false, problem: 'the upstream returned no output' };
  if (files.length > files_max) return { ok: false, problem: `the upstream returned ${files.length} files` };
  const stored: StoredFile[] = [];
  for (const [position, file] of files.entries()) {
    const measured = await probeMedia(file.bytes);
    if (!measured.ok)
      return { ok: false, problem: `the upstream returned a file that cannot be read: ${measured.problem}` };
    const { probe } = measured;
    if (probe.type !== task.kind)
      return { ok: false, problem: `the upstream returned ${probe.content_type} for ${task.kind}` };
    const key = `${task.account_id}/${task.id}/${position}.${probe.extension}`;
    await app.storage.put(key, file.bytes, { content_type: probe.content_type, size_limit_bytes: file_bytes_max });
    await failpoint('task.copying');
    const { width, height, duration } = probe;
    stored.push({
      key,
      item: {
        type: probe.type,
        content_type: probe.content_type,
        size_bytes: file.bytes.length,
        ...(width !== undefined && { width }),
        ...(height !== undefined && { height }),
        ...(duration !== undefined && { duration }),
      },
    });
  }
  return { ok: true, files: stored, units: unitsOfOutputs(stored.map((file) => file.item)) };
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
