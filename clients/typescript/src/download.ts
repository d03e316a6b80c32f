import { ConnectionError, MedleyError } from './errors.ts';
import { chunksOf, isNode, transfer_timeout_ms } from './files.ts';
import type { CallOptions, Http } from './http.ts';

/** An output, or its link alone. */
export type Downloadable = string | { url: string; size_bytes?: number };

/** Links are signed: the API key is not sent to them, whoever serves them. */
const linkRequest = (file: Downloadable) => ({ method: 'GET', path: urlOf(file), is_repeatable: true }) as const;

export async function downloadBlob(http: Http, file: Downloadable, options: CallOptions): Promise<Blob> {
  const read = async (response: Response) => {
    const blob = await response.blob();
    checkSize(file, blob.size);
    return blob;
  };
  return http.send(linkRequest(file), { timeout_ms: transfer_timeout_ms, ...options }, read);
}

/** Writes a file that is there only when it is complete. Begins anew if the connection is cut. */
export async function downloadFile(http: Http, file: Downloadable, path: string, options: CallOptions): Promise<void> {
  if (!isNode()) throw new MedleyError('A page has no paths: download a Blob.');
  const { writeFile } = await import('./node.ts');
  const read = async ({ body }: Response) => {
    if (!body) throw new ConnectionError('The answer has no body.');
    const isComplete = (size_bytes: number) => checkSize(file, size_bytes);
    await writeFile(path, chunksOf(body), isComplete);
  };
  return http.send(linkRequest(file), { timeout_ms: transfer_timeout_ms, ...options }, read);
}

/** Returns the bytes while they come. `timeout_ms` ends with the first of them; the signal ends all. */
export async function downloadStream(
  http: Http,
  file: Downloadable,
  options: CallOptions,
): Promise<ReadableStream<Uint8Array>> {
  const read = async ({ body }: Response) => {
    if (!body) throw new ConnectionError('The answer has no body.');
    return body;
  };
  const stream = await http.send(linkRequest(file), options, read);
  return options.signal ? untilAbort(stream, options.signal) : stream;
}

/** Ends a stream with the reason of the signal. */
function untilAbort(stream: ReadableStream<Uint8Array>, signal: AbortSignal): ReadableStream<Uint8Array> {
  const reader = stream.getReader();
  let onAbort: () => void = () => undefined;
  const leave = () => signal.removeEventListener('abort', onAbort);
  return new ReadableStream({
    start(controller) {
      onAbort = () => {
        controller.error(signal.reason);
        void reader.cancel(signal.reason).catch(() => undefined);
      };
      if (signal.aborted) onAbort();
      else signal.addEventListener('abort', onAbort, { once: true });
    },
    async pull(controller) {
      const { done, value } = await reader.read();
      if (signal.aborted) return;
      if (!done) return controller.enqueue(value);
      leave();
      controller.close();
    },
    async cancel(reason) {
      leave();
      await reader.cancel(reason);
    },
  });
}

function urlOf(file: Downloadable): string {
  const url = typeof file === 'string' ? file : file.url;
  if (!/^https?:\/\//.test(url)) throw new MedleyError('A download needs an output, or its http(s) link.');
  return url;
}

/** Throws if a connection was cut where that looks like the end. */
function checkSize(file: Downloadable, size_bytes: number): void {
  if (typeof file === 'string' || file.size_bytes === undefined || file.size_bytes === size_bytes) return;
  throw new ConnectionError(`${size_bytes} of ${file.size_bytes} bytes came.`);
}
