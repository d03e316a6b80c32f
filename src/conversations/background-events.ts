import type { JsonObject } from '../catalog/model.ts';
import { StreamWriter } from '../chat/stream-writer.ts';
import { SseSplitter } from '../net/sse.ts';
import type { Background, OutputReader } from '../styles/codec.ts';
import { objectOf } from '../styles/stream.ts';
import type { NewContent } from './background.ts';

/** Longer than any event that a relay lets through. */
export const line_bytes_max = 67_108_864;

/** Events are written down together. */
const gather_ms = 250;
const gathered_bytes_max = 262_144;

/** An upstream is read no further while so much waits for the database. */
const waiting_bytes_max = 4_194_304;

/** More of a stream is not kept: its readers miss what is between, and have the last event with the whole answer. */
const kept_bytes_max = 67_108_864;

/** Writes a part of the events down. False if nobody wants them any more; rejects if it has to be tried again. */
export type KeepEvents = (content: NewContent) => Promise<boolean>;

/** Returns a part of the events of a response as it is stored. */
export function eventsContent(texts: readonly string[], first_event: number): NewContent {
  const id = `events ${String(first_event).padStart(9, '0')}`;
  return { id, json: texts.join(''), first_event, last_event: first_event + texts.length - 1 };
}

/** Takes the stream of a call that nobody reads now: its events get numbers of their own, and are written down. */
export class EventsWriter extends StreamWriter {
  readonly #splitter = new SseSplitter(line_bytes_max);
  readonly #style: Background;
  readonly #keep: KeepEvents | undefined;
  readonly #output: OutputReader;
  #next: number;
  #first: number;
  #texts: string[] = [];
  #bytes = 0;
  #kept_bytes = 0;
  #read_bytes = 0;
  #has_written = false;
  #timer: NodeJS.Timeout | undefined;
  #flushing: Promise<void> | undefined;
  #is_over = false;
  #drained: (() => void)[] = [];

  /** Without `keep` nothing is written down. `first`: the number of the first event. */
  constructor(style: Background, first: number, keep: KeepEvents | undefined) {
    super();
    this.#style = style;
    this.#output = style.openOutput();
    this.#keep = keep;
    this.#next = first;
    this.#first = first;
  }

  override get is_open(): boolean {
    return this.#has_written;
  }

  override get is_full(): boolean {
    return this.#bytes > waiting_bytes_max;
  }

  override write(bytes: Buffer): boolean {
    this.#has_written = true;
    if (this.#is_over) return true;
    for (const { data = '' } of this.#splitter.push(bytes)) if (data.trim() !== '') this.#read(data);
    if (!this.#keep) return true;
    if (this.#bytes > gathered_bytes_max) this.#flush();
    else this.#timer ??= setTimeout(() => this.#flush(), gather_ms);
    return !this.is_full;
  }

  /** Adds an event of ours. */
  add(type: string, fields: JsonObject): void {
    if (this.#keep) this.#push(type, fields);
  }

  override drained(): Promise<void> {
    return this.is_full ? new Promise((resolve) => this.#drained.push(resolve)) : Promise.resolve();
  }

  override end(): void {}
  override cut(): void {}

  /** Ends the stream with a last event. Resolves to what is not written down. */
  async last(type: string, fields: JsonObject): Promise<NewContent[]> {
    this.#is_over = true;
    clearTimeout(this.#timer);
    await this.#flushing;
    if (!this.#keep) return [];
    this.#push(type, fields);
    return [eventsContent(this.#texts, this.#first)];
  }

  /** Returns the output that the events have brought so far. */
  output(): JsonObject[] {
    return this.#output.output();
  }

  #read(data: string): void {
    const event = objectOf(data);
    this.#read_bytes += data.length;
    if (this.#read_bytes <= kept_bytes_max) this.#output.read(event);
    if (this.#keep) this.#take(event);
  }

  #take(event: JsonObject): void {
    const type = this.#style.upstreamEvent(event);
    if (type === undefined || this.#kept_bytes > kept_bytes_max) return;
    const { type: _, sequence_number: __, ...fields } = event;
    this.#push(type, fields);
  }

  #push(type: string, fields: JsonObject): void {
    const text = this.#style.event(type, fields, this.#next++);
    this.#texts.push(text);
    this.#bytes += text.length;
    this.#kept_bytes += text.length;
  }

  #flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#flushing ??= this.#write().finally(() => {
      this.#flushing = undefined;
      if (this.#texts.length > 0 && !this.#is_over) this.#timer ??= setTimeout(() => this.#flush(), gather_ms);
    });
  }

  /** Writes what waits. What could not be written is written with what follows. */
  async #write(): Promise<void> {
    const texts = this.#texts;
    if (texts.length === 0) return;
    const bytes = this.#bytes;
    this.#texts = [];
    try {
      await this.#keep?.(eventsContent(texts, this.#first));
      this.#first += texts.length;
      this.#bytes -= bytes;
      for (const wake of this.#drained.splice(0)) wake();
    } catch {
      this.#texts = [...texts, ...this.#texts];
    }
  }
}
