import { open, type FileHandle } from 'node:fs/promises';
import type { Extension } from './media-types.ts';

/** A file that is no image, audio or video, but a PDF or a text. */
export type Document = { type: 'document'; content_type: string; extension: Extension; size_bytes: number };

const part_bytes = 1_048_576;
const end_bytes = 1_024;

/** Texts that are told apart by the end of their names, since any of them is a text; all others are plain. */
const text_types: { readonly [suffix: string]: { content_type: string; extension: Extension } } = {
  json: { content_type: 'application/json', extension: 'json' },
  jsonl: { content_type: 'application/jsonl', extension: 'jsonl' },
};
const plain_text = { content_type: 'text/plain; charset=utf-8', extension: 'txt' } as const;

/** Returns the type of a document at a path, by its bytes: a whole PDF, or UTF-8 without NUL. Undefined for what is neither. */
export async function documentAt(path: string, filename: string): Promise<Document | undefined> {
  const file = await open(path, 'r');
  try {
    const { size: size_bytes } = await file.stat();
    const head = await readAt(file, 0, 5);
    if (head.toString('latin1') === '%PDF-') {
      const end = await readAt(file, Math.max(0, size_bytes - end_bytes), end_bytes);
      if (!end.includes('%%EOF')) return undefined;
      return { type: 'document', content_type: 'application/pdf', extension: 'pdf', size_bytes };
    }
    if (size_bytes === 0 || !(await isText(file))) return undefined;
    const suffix = filename.slice(filename.lastIndexOf('.') + 1).toLowerCase();
    return { type: 'document', ...(text_types[suffix] ?? plain_text), size_bytes };
  } finally {
    await file.close();
  }
}

async function isText(file: FileHandle): Promise<boolean> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  try {
    for (let at = 0; ; at += part_bytes) {
      const part = await readAt(file, at, part_bytes);
      if (part.includes(0)) return false;
      decoder.decode(part, { stream: part.length === part_bytes });
      if (part.length < part_bytes) return true;
    }
  } catch (error) {
    if (error instanceof TypeError) return false;
    throw error;
  }
}

async function readAt(file: FileHandle, position: number, length: number): Promise<Buffer> {
  const bytes = Buffer.alloc(length);
  const { bytesRead } = await file.read(bytes, 0, length, position);
  return bytes.subarray(0, bytesRead);
}
