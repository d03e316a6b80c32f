import { SseSplitter } from '../net/sse.ts';
import { StreamWriter } from './stream-writer.ts';

/** Longer than any event that a relay lets through. */
const line_bytes_max = 67_108_864;

/** Writes the events of a stream as the items of one JSON array, as `streamGenerateContent` has them without `alt=sse`. */
export class ArrayWriter extends StreamWriter {
  readonly #splitter = new SseSplitter(line_bytes_max);
  #has_items = false;

  constructor() {
    super();
    this.headers['content-type'] = 'application/json; charset=utf-8';
  }

  protected override send(bytes: Buffer): boolean {
    let text = '';
    for (const { data = '' } of this.#splitter.push(bytes)) {
      if (data.trim() === '') continue;
      text += (this.#has_items ? ',\r\n' : '[') + data;
      this.#has_items = true;
    }
    return super.send(Buffer.from(text));
  }

  override end(): void {
    if (this.is_open) super.send(Buffer.from(this.#has_items ? ']' : '[]'));
    super.end();
  }
}
