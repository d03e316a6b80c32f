import type { Json } from '../../catalog/model.ts';

/**
 * Signatures of thoughts that other upstreams gave, in the `thoughtSignature` of a thought: the SDKs take base64 alone
 * there, and some write it with the other two characters when they send it back.
 */
type Sealed = { kind: 'thinking' | 'redacted'; text: string };

const marks = { thinking: 'medley-thinking:', redacted: 'medley-redacted:' } as const;

export function sealed({ kind, text }: Sealed): string {
  return Buffer.from(marks[kind] + text).toString('base64');
}

/** Opens a signature; undefined for what Google signed. */
export function unsealed(signature: Json | undefined): Sealed | undefined {
  if (typeof signature !== 'string') return undefined;
  // Nothing that does not begin so is decoded: these are the first letters of both marks.
  if (!signature.startsWith('bWVkbGV5L')) return undefined;
  const text = Buffer.from(signature, 'base64').toString();
  for (const kind of ['thinking', 'redacted'] as const)
    if (text.startsWith(marks[kind])) return { kind, text: text.slice(marks[kind].length) };
  return undefined;
}
