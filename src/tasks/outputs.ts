import type { App } from '../app.ts';
import { contentOf, withSpool, type Spool } from '../files/spool.ts';
import { failpoint } from '../lib/failpoint.ts';
import type { RunFile } from '../providers/provider.ts';
import { storageKey } from '../storage/key.ts';
import { makeLink } from '../storage/links.ts';
import { file_bytes_max, measureFiles, type Measured, type NoFiles, type Reading } from './run-files.ts';
import type { OutputItem, StoredFile, Task } from './task.ts';

/** The stored and measured files of a run, or the reason why there are none. */
type Outputs = { state: 'stored'; files: StoredFile[] } | NoFiles;

/** The origin of files. */
export type Origin = {
  /** Its configuration says which addresses its result links may have. */
  provider: string;
  /** Breaks downloads off. */
  stopped: AbortSignal;
};

/**
 * Copies the files of a run into our storage and measures them from their bytes. The storage keys
 * depend only on the task and the position, so a repeat after a crash overwrites and leaves nothing;
 * and nothing is stored unless all files are what they should be.
 */
export async function storeOutputs(app: App, task: Task, files: readonly RunFile[], origin: Origin): Promise<Outputs> {
  return withSpool(app.config.data_dir, async (spool) => {
    const measured = await measureFiles(files, readingOf(app, task, origin, spool));
    if ('state' in measured) return measured;
    const stored: StoredFile[] = [];
    for (const [position, output] of measured.entries()) stored.push(await storeOutput(app, task, position, output));
    return { state: 'stored', files: stored };
  });
}

function readingOf(app: App, task: Task, { provider, stopped }: Origin, spool: Spool): Reading<string> {
  const rules = app.addressRules();
  const trusted = app.catalog.current.providers.get(provider)?.allow_private ?? false;
  return {
    prober: app.prober,
    types: outputTypes(app, task),
    rules: { ...rules, allow_private: rules.allow_private || trusted },
    stopped,
    fetch: (url, options) => spool.add((file) => app.guard.save(url, file, options)),
  };
}

/** Returns the output types of the model; if it is no longer offered, the types that it can have made. */
function outputTypes(app: App, task: Task): readonly string[] {
  return app.catalog.current.models.get(task.model)?.output_types ?? [task.kind, 'text'];
}

async function storeOutput(app: App, task: Task, position: number, output: Measured<string>): Promise<StoredFile> {
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
