import type { AddressRules } from '../net/address.ts';
import type { CatalogHolder } from '../catalog/catalog.ts';
import type { Guard } from '../net/guard.ts';
import type { Prober } from '../storage/probe.ts';
import type { Storage } from '../storage/storage.ts';
import { contentOf, withSpool, type Spool } from '../files/spool.ts';
import { failpoint } from '../lib/failpoint.ts';
import type { RunFile } from '../providers/provider.ts';
import { storageKey } from '../storage/key.ts';
import { makeLink } from '../storage/links.ts';
import { file_bytes_max, measureFiles, type MeasuredFile, type NoFiles, type RunFileOptions } from './run-files.ts';
import type { OutputItem, StoredFile, Task } from './task.ts';

/** The parts of the app that links to outputs are made from. */
export type LinkParts = {
  readonly catalog: CatalogHolder;
  readonly secret: string;
  base_url(): string;
};

/** The parts of the app that storing the outputs of a run takes. */
export type OutputParts = {
  readonly config: { data_dir: string };
  readonly catalog: CatalogHolder;
  readonly storage: Storage;
  readonly prober: Prober;
  readonly guard: Guard;
  addressRules(): AddressRules;
};

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
export async function storeOutputs(
  parts: OutputParts,
  task: Task,
  files: readonly RunFile[],
  origin: Origin,
): Promise<Outputs> {
  return withSpool(parts.config.data_dir, async (spool) => {
    const measured = await measureFiles(files, readingOf(parts, task, origin, spool));
    if ('state' in measured) return measured;
    const stored: StoredFile[] = [];
    for (const [position, output] of measured.entries()) stored.push(await storeOutput(parts, task, position, output));
    return { state: 'stored', files: stored };
  });
}

function readingOf(
  parts: OutputParts,
  task: Task,
  { provider, stopped }: Origin,
  spool: Spool,
): RunFileOptions<string> {
  const rules = parts.addressRules();
  const { allow_private: trusted = false, proxy } = parts.catalog.current.providers.get(provider) ?? {};
  return {
    prober: parts.prober,
    types: outputTypes(parts, task),
    rules: { ...rules, allow_private: rules.allow_private || trusted },
    stopped,
    fetch: (url, options) => spool.add((file) => parts.guard.save(url, file, { ...options, dial_options: { proxy } })),
  };
}

/** Returns the output types of the model; if it is no longer offered, the types that it can have made. */
function outputTypes(parts: OutputParts, task: Task): readonly string[] {
  return parts.catalog.current.models.get(task.model)?.output_types ?? [task.kind, 'text'];
}

async function storeOutput(
  parts: OutputParts,
  task: Task,
  position: number,
  output: MeasuredFile<string>,
): Promise<StoredFile> {
  const { content, extension, item } = output;
  const key = storageKey({ account_id: task.account_id, owner_id: task.id, index: position, extension });
  await parts.storage.put(key, contentOf(content), {
    content_type: item.content_type,
    size_limit_bytes: file_bytes_max,
  });
  await failpoint('task.copying');
  return { key, item };
}

/** Output items with links that are valid from `now` for the configured time. */
export function linkOutputs(parts: LinkParts, files: readonly StoredFile[], now: Date): OutputItem[] {
  const expires_at_ms = now.getTime() + parts.catalog.current.settings.outputs.link_ttl_ms;
  return files.map(({ key, item }) => {
    const { type, content_type, size_bytes, ...measures } = item;
    const { url, expires_at } = makeLink(parts.secret, { base_url: parts.base_url(), key, expires_at_ms });
    return { type, url, content_type, size_bytes, ...measures, expires_at };
  });
}
