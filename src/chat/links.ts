import type { Permit, Semaphore } from '../concurrency/semaphore.ts';
import { ApiError } from '../errors.ts';
import type { AddressRules } from '../net/address.ts';
import { GuardError, type Guard } from '../net/guard.ts';
import { mistake } from '../styles/fields.ts';
import type { Link } from '../styles/codec.ts';
import { sniff, sniff_bytes, type Container } from '../storage/sniff.ts';

const links_max = 32;
const file_bytes_max = 20_971_520;

/** The size of all links of a request together (`link_memory` has eight times as much): as base64 they stand in one body, which upstreams take up to 100 MB of. */
const files_bytes_max = 67_108_864;

const at_once = 4;

const limits = { connect_timeout_ms: 10_000, idle_timeout_ms: 10_000, timeout_ms: 30_000, redirects_max: 5 };

/** The parts of the app that fetching files behind links takes. */
export type LinkParts = FetchParts & { readonly limits: { readonly link_memory: Semaphore } };

type FetchParts = { readonly guard: Guard; addressRules(): AddressRules };

/**
 * Fetches an account's files for an upstream that fetches none, and writes them into its body. Answers what they have
 * of the memory for them, which is to be released when they were sent; or what is wrong with a link, naming its field:
 * an upstream that fetches by itself may still take it.
 */
export async function fetchLinks(
  parts: LinkParts,
  account_id: string,
  links: readonly Link[],
  signal: AbortSignal,
): Promise<Permit | ApiError> {
  if (links.length > links_max) {
    return mistake(links[links_max]?.at ?? 'messages', `is one link too many: this model accepts ${links_max}`);
  }
  const weight = Math.min(links.length * file_bytes_max, files_bytes_max);
  const permit = await parts.limits.link_memory.acquire(account_id, { weight, signal });
  if (!permit) throw signal.reason;
  let fetched: number | ApiError = 0;
  try {
    fetched = await fetchAll(parts, links, signal);
  } finally {
    permit.shrink(fetched instanceof ApiError ? 0 : fetched);
  }
  return fetched instanceof ApiError ? fetched : permit;
}

/** Downloads all links and returns their bytes together, or the error. */
async function fetchAll(parts: FetchParts, links: readonly Link[], signal: AbortSignal): Promise<number | ApiError> {
  let left_bytes = files_bytes_max;
  for (let from = 0; from < links.length; from += at_once) {
    const some = links.slice(from, from + at_once);
    const size_bytes_max = Math.min(left_bytes, file_bytes_max);
    const files = await Promise.all(some.map((link) => fetchLink(parts, link, size_bytes_max, signal)));
    for (const [index, file] of files.entries()) {
      const link = some[index];
      if (file instanceof ApiError) return file;
      if (!link) continue;
      left_bytes -= file.bytes.length;
      if (left_bytes < 0) return mistake(link.at, `exceeds the limit of all files together, ${files_bytes_max} bytes`);
      link.inline.mimeType = file.type;
      link.inline.data = file.bytes.toString('base64');
    }
  }
  return files_bytes_max - left_bytes;
}

async function fetchLink(
  { guard, addressRules }: FetchParts,
  { url, at }: Link,
  size_bytes_max: number,
  signal: AbortSignal,
): Promise<{ bytes: Buffer; type: string } | ApiError> {
  try {
    const rules = addressRules();
    const { bytes, content_type } = await guard.download(url, { ...limits, rules, size_bytes_max, signal });
    const type = typeOf(bytes, content_type);
    return type === undefined ? mistake(at, 'does not lead to an image or a document') : { bytes, type };
  } catch (error) {
    if (!(error instanceof GuardError)) throw error;
    return mistake(at, `could not be fetched: ${error.message}`);
  }
}

const types: { readonly [container in Container]?: string } = {
  png: 'image/png',
  jpeg: 'image/jpeg',
  gif: 'image/gif',
  webp: 'image/webp',
  avif: 'image/avif',
};

/** The type of a file, by its bytes first: servers say anything. A page about an image is none. */
function typeOf(bytes: Buffer, content_type: string | undefined): string | undefined {
  const container = sniff(bytes.subarray(0, sniff_bytes));
  const sniffed = container && types[container];
  if (sniffed !== undefined) return sniffed;
  if (bytes.subarray(0, 5).toString('latin1') === '%PDF-') return 'application/pdf';
  const declared = (content_type ?? '').split(';')[0]?.trim().toLowerCase() ?? '';
  return /^(image|audio|video)\/[\w.+-]+$|^text\/(?!html)[\w.+-]+$/.test(declared) ? declared : undefined;
}
