import { MedleyError } from './errors.ts';

const event_length_max = 64 * 1024 * 1024;

/** Server-sent events: takes bytes as they come, cut anywhere, and returns the data of each event that is complete. */
export class EventReader {
  readonly #decoder = new TextDecoder();
  #line = '';
  #data: string[] = [];
  #length = 0;
  #is_after_return = false;

  /** Throws MedleyError for an event that is too long to be one of an answer. */
  take(bytes: Uint8Array): string[] {
    const text = this.#decoder.decode(bytes, { stream: true });
    if (text === '') return [];
    // The line feed belongs to the carriage return that ended the bytes before.
    const rest = this.#is_after_return && text.startsWith('\n') ? text.slice(1) : text;
    this.#is_after_return = text.endsWith('\r');
    const [first = '', ...others] = rest.split(/\r\n|\r|\n/);
    this.#line += first;
    const events: string[] = [];
    for (const next of others) {
      if (this.#line === '') events.push(...this.#endEvent());
      else this.#takeLine(this.#line);
      this.#line = next;
    }
    if (this.#length + this.#line.length > event_length_max)
      throw new MedleyError('An event of the stream is too long.');
    return events;
  }

  #endEvent(): string[] {
    const data = this.#data;
    this.#data = [];
    this.#length = 0;
    return data.length === 0 ? [] : [data.join('\n')];
  }

  /** A line without a name is a comment, which keeps the connection open. */
  #takeLine(line: string): void {
    const [, name, value = ''] = /^([^:]*)(?:: ?(.*))?$/s.exec(line) ?? [];
    if (name !== 'data') return;
    this.#data.push(value);
    this.#length += value.length;
  }
}
