import { isObject, type Json, type JsonObject } from '../catalog/model.ts';
import { contentKeys, readContent, storeContent, type ContentKeys, type StoredContent } from '../db/content.ts';
import { ApiError } from '../errors.ts';
import type { StateHalf } from '../styles/codec.ts';
import { objectOf } from '../styles/stream.ts';

/** The part of the app that summaries take: the secret of links, which there always is, and the one before it. */
export type SummaryParts = {
  readonly secret: string;
  readonly config: { readonly secret_before: string | undefined };
};

/** Summaries of ours begin with this: the contents of upstreams do not. */
const mark = 'medley:';

/** Longer than any answer that a model may have. */
const summary_bytes_max = 67_108_864;

function keysOf({ secret, config }: SummaryParts): ContentKeys {
  return contentKeys({ secret, secret_before: config.secret_before });
}

/** Nobody reads a summary under the name of another account. */
function placeOf(account_id: string): string {
  return `compaction ${account_id}`;
}

/** Encrypts a summary for its account. */
export async function encryptSummary(parts: SummaryParts, account_id: string, text: string): Promise<string> {
  const { key_id, content } = await storeContent(keysOf(parts), placeOf(account_id), JSON.stringify({ text }));
  return `${mark}${key_id}:${content.toString('base64')}`;
}

/**
 * Puts our own summaries in place of the items that have them, so that every upstream understands these. The same body if
 * there are none. Rejects with ApiError 400 for what is none of this account's.
 */
export async function withSummaries(
  parts: SummaryParts,
  { compaction }: StateHalf,
  account_id: string,
  body: JsonObject,
): Promise<JsonObject> {
  const { input } = body;
  if (!Array.isArray(input)) return body;
  const texts = new Map<number, string>();
  for (const [index, item] of input.entries()) {
    const content = isObject(item) ? compaction.contentIn(item) : undefined;
    if (content?.startsWith(mark)) texts.set(index, await openSummary(parts, account_id, content, `input[${index}]`));
  }
  if (texts.size === 0) return body;
  const opened = input.map((item, index): Json => {
    const text = texts.get(index);
    return text === undefined ? item : compaction.renderSummary(text);
  });
  return { ...body, input: opened };
}

async function openSummary(parts: SummaryParts, account_id: string, content: string, at: string): Promise<string> {
  const [key_id = '', base64 = ''] = content.slice(mark.length).split(':');
  const stored: StoredContent = { key_id, content: Buffer.from(base64, 'base64') };
  const json = await readContent(keysOf(parts), placeOf(account_id), stored, summary_bytes_max).catch(() => undefined);
  const text = json === undefined ? undefined : objectOf(json)['text'];
  if (typeof text === 'string') return text;
  // The code of the style's own service.
  const message = `${at} cannot be read: its encrypted_content is not one that this account was given, or its secret has changed twice.`;
  throw new ApiError('invalid_request', message, { param: at, code: 'invalid_encrypted_content' });
}
