import { once } from 'node:events';
import { PassThrough, type Readable } from 'node:stream';
import type pg from 'pg';
import { copyOut } from '../db/copy.ts';
import type { Part } from './manifest.ts';
import { writePart } from './parts.ts';
import type { Progress } from './progress.ts';

/** Writes the rows of several copies, one after the other, into one part. */
export class TableWriter {
  readonly #lines = new PassThrough();
  readonly #part: Promise<Part>;
  /** Rows so far. */
  rows = 0;

  constructor(folder: string, file: string, progress: Progress, options: { compressed?: boolean } = {}) {
    this.#part = writePart(folder, file, this.#lines, progress, options);
    this.#part.catch(() => undefined); // `add` or `end` tells it
  }

  /** Adds what `copy … to stdout` sends. */
  async add(client: pg.Client, statement: string): Promise<void> {
    try {
      this.rows += await copyOut(client, statement, (rows) => this.#take(rows));
    } catch (error) {
      this.abandon();
      await this.#part; // where the disk is the cause, it says so
      throw error;
    }
  }

  /** By hand: `pipeline` leaves its listeners at the end that goes on. */
  async #take(rows: Readable): Promise<void> {
    for await (const chunk of rows) if (!this.#lines.write(chunk)) await once(this.#lines, 'drain');
  }

  /** Returns the part once the disk has it. */
  end(): Promise<Part> {
    this.#lines.end();
    return this.#part;
  }

  /** Closes the file, whatever is in it. After `end` nothing happens. */
  abandon(): void {
    this.#lines.destroy();
  }
}
