import { randomBase62 } from '../../lib/ids.ts';
import type { InputFile } from '../provider.ts';

/** A form as RFC 7578 has it, made while it is sent: only a piece of a file is in memory at a time. */

/** A part: a text, or a file with its name. */
export type FormPart = { name: string; text: string } | { name: string; filename: string; file: InputFile };

/** The bytes of a request that are made while it is sent; their number is known before. */
export type BodyStream = { content_type: string; size_bytes: number; chunks(): AsyncIterable<Buffer> };

/** Returns a form of these parts. Nobody can guess what stands between them. */
export function formStream(parts: readonly FormPart[]): BodyStream {
  const boundary = `medley-${randomBase62(30)}`;
  const heads = parts.map((part) => Buffer.from(headOf(part, boundary)));
  const tail = Buffer.from(`--${boundary}--\r\n`);
  const line_end = Buffer.from('\r\n');
  const sizes = parts.map((part) => ('file' in part ? part.file.size_bytes : Buffer.byteLength(part.text)));
  const size_bytes = [...heads.map(({ length }) => length + line_end.length), ...sizes].reduce(
    (sum, size) => sum + size,
    tail.length,
  );
  return {
    content_type: `multipart/form-data; boundary=${boundary}`,
    size_bytes,
    chunks: async function* () {
      for (const [index, part] of parts.entries()) {
        yield heads[index] ?? tail;
        if ('file' in part) yield* bytesOf(part.file);
        else yield Buffer.from(part.text);
        yield line_end;
      }
      yield tail;
    },
  };
}

/** Returns a body that is one file. */
export function fileStream(file: InputFile): BodyStream {
  return { content_type: file.content_type, size_bytes: file.size_bytes, chunks: () => bytesOf(file) };
}

/** The bytes of a file; throws if they are not as many as was announced. */
async function* bytesOf(file: InputFile): AsyncGenerator<Buffer> {
  let left_bytes = file.size_bytes;
  const stream: AsyncIterable<Buffer> = await file.open();
  for await (const chunk of stream) {
    left_bytes -= chunk.length;
    if (left_bytes < 0) break;
    yield chunk;
  }
  if (left_bytes !== 0) throw new Error('a file of the input has another size than it had');
}

/** Quotes and line breaks in a name are written as browsers write them. */
function headOf(part: FormPart, boundary: string): string {
  const name = `--${boundary}\r\ncontent-disposition: form-data; name="${escaped(part.name)}"`;
  if ('text' in part) return `${name}\r\n\r\n`;
  return `${name}; filename="${escaped(part.filename)}"\r\ncontent-type: ${part.file.content_type}\r\n\r\n`;
}

function escaped(text: string): string {
  return text.replaceAll('\r', '%0D').replaceAll('\n', '%0A').replaceAll('"', '%22');
}
