/** Describes the texts, images and documents of a chat for the sandbox. */
import type { Prober } from '../../storage/probe.ts';
import type { Conversation, Part, Source } from '../../styles/conversation.ts';

/** The text of some parts. */
export function textOf(parts: readonly Part[]): string {
  return parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n');
}

const quote_length_max = 400;

/** The beginning of a text, in quotation marks and with a full stop. */
export function quoted(text: string): string {
  const shown = text.length > quote_length_max ? `${text.slice(0, quote_length_max).toWellFormed()}…` : text;
  return `“${shown.trim()}”.`;
}

const described_max = 16;

/** A sentence for each image, document and audio of the last turn. */
export async function describeMedia({ turns }: Conversation, prober: Prober): Promise<string[]> {
  const last = turns.findLast(({ role }) => role === 'user')?.parts ?? [];
  const parts = last.flatMap((part) => (part.type === 'tool_result' ? part.parts : [part]));
  const sentences = await Promise.all(
    parts
      .filter(isMedia)
      .slice(0, described_max)
      .map((part) => describe(prober, part)),
  );
  return sentences.filter((sentence) => sentence !== '');
}

function isMedia({ type }: Part): boolean {
  return type === 'image' || type === 'document' || type === 'audio';
}

async function describe(prober: Prober, part: Part): Promise<string> {
  if (part.type === 'audio') return `There is audio (${part.format}, ${bytesOf(part.data)} bytes).`;
  if (part.type === 'document') {
    const title = part.title === undefined ? '' : ` ${quoted(part.title).slice(0, -1)}`;
    if (part.source.type === 'text') return `There is a document${title}: ${quoted(part.source.text)}`;
    return `There is a document${title} (${sizeOf(part.source)}).`;
  }
  if (part.type !== 'image') return '';
  const size = await imageSize(prober, part.source);
  return size
    ? `There is an image of ${size.width} × ${size.height} pixels (${sizeOf(part.source)}).`
    : `There is an image (${sizeOf(part.source)}).`;
}

function sizeOf(source: Source): string {
  return source.type === 'url'
    ? 'a link, which is not followed'
    : `${source.media_type}, ${bytesOf(source.data)} bytes`;
}

function bytesOf(base64: string): number {
  return Buffer.byteLength(base64, 'base64');
}

type Size = { width: number; height: number };

/** An image is looked at twice: when it is described and when it is counted. */
const sizes = new WeakMap<Source, Promise<Size | undefined>>();

/** Returns the size in pixels; undefined for links, and for what is no image. */
export function imageSize(prober: Prober, source: Source): Promise<Size | undefined> {
  const cached = sizes.get(source);
  if (cached) return cached;
  const size = measure(prober, source);
  sizes.set(source, size);
  return size;
}

async function measure(prober: Prober, source: Source): Promise<Size | undefined> {
  if (source.type === 'url') return undefined;
  const probed = await prober.probeForCaller('sandbox', Buffer.from(source.data, 'base64')); // whose it is is not told here
  if (!probed.ok) return undefined;
  const { width, height } = probed.probe;
  return width === undefined || height === undefined ? undefined : { width, height };
}
