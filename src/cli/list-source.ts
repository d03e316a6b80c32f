import { readFile } from 'node:fs/promises';
import { readList, type ListForm } from '../catalog/lists/index.ts';
import { ListError, type ListedModel } from '../catalog/lists/listed.ts';
import type { ProviderEntry } from '../catalog/schema.ts';
import { resolveSecret } from '../config.ts';
import { CommandError } from './command.ts';

/**
 * Reads a list of models from a file or a URL; with the key of `provider`, if it is that provider's own. Throws
 * CommandError for what cannot be read or is no such list.
 */
export async function readListAt(
  form: ListForm,
  place: string,
  provider: ProviderEntry | undefined,
): Promise<ListedModel[]> {
  const text = await readPlace(place, provider);
  try {
    return readList(form, text);
  } catch (error) {
    throw error instanceof ListError ? new CommandError(`${place} ${error.message}`) : error;
  }
}

const list_bytes_max = 64_000_000;
const read_limit_ms = 60_000;

async function readPlace(place: string, provider: ProviderEntry | undefined): Promise<string> {
  try {
    if (!/^https?:\/\//.test(place)) return await readFile(place, 'utf8');
    const secret = provider?.api_key === undefined ? undefined : resolveSecret(provider.api_key);
    const headers: Record<string, string> = secret === undefined ? {} : { authorization: `Bearer ${secret}` };
    const answer = await fetch(place, { headers, redirect: 'follow', signal: AbortSignal.timeout(read_limit_ms) });
    if (!answer.ok) throw new ListError(`answered ${answer.status}.`);
    const text = await answer.text();
    if (text.length > list_bytes_max) throw new ListError(`is larger than ${list_bytes_max / 1_000_000} MB.`);
    return text;
  } catch (error) {
    if (error instanceof ListError) throw new CommandError(`${place} ${error.message}`);
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
    throw new CommandError(`${place} could not be read: ${cause instanceof Error ? cause.message : String(cause)}`);
  }
}
