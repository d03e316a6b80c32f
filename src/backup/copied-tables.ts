import pg from 'pg';
import { sqlName, type GrowingTable, type Table } from '../db/tables.ts';
import { stored_uploads } from '../files/files.ts';
import { assert } from '../lib/assert.ts';
import { growing_tasks, storedOutputs } from '../tasks/files.ts';
import { rowsOfParts } from './growing.ts';
import type { Manifest, Part } from './manifest.ts';
import type { Progress } from './progress.ts';
import { TableWriter } from './table-writer.ts';

/** Name of the file with the keys of the stored files; it is removed once they are copied, and stays where they are not. */
export const keys_name = 'files.keys';

/** The keys of the stored files. */
export type Keys = { list: Part; count: number };

/** The tables of a backup while they are written, and the keys of the files that their rows tell of. */
export class CopiedTables {
  readonly #client: pg.Client;
  readonly #tables: readonly Table[];
  readonly #writers: Map<string, TableWriter>;
  readonly #keys: TableWriter;
  readonly #progress: Progress;

  constructor(client: pg.Client, folder: string, tables: readonly Table[], progress: Progress) {
    this.#client = client;
    this.#tables = tables;
    this.#progress = progress;
    const writerOf = (file: string, compressed: boolean) => new TableWriter(folder, file, progress, { compressed });
    this.#writers = new Map(tables.map(({ name }) => [name, writerOf(`tables/${name}.copy.gz`, true)]));
    this.#keys = writerOf(keys_name, false);
  }

  /** Adds all rows of a table. */
  async addTable(table: Table): Promise<void> {
    await this.#add(table.name, sqlName(table));
    if (table.name === stored_uploads.table) await this.#addKeys(stored_uploads.keys);
    if (table.name === growing_tasks.name) await this.#addKeys(storedOutputs(sqlName(table)));
  }

  /** Adds the rows that may still change, with what belongs to them. */
  async addChanging(table: GrowingTable): Promise<void> {
    if (table.changing === undefined) return;
    await this.#add(table.name, table.changing);
    await this.#addParts(table, table.changing);
  }

  /** Adds the row set `rows` of a table as they were at the moment, with what belongs to them. */
  async addGrown(table: GrowingTable, rows: string): Promise<void> {
    await this.#add(table.name, rows, table.values);
    await this.#addParts(table, rows);
    if (table.name === growing_tasks.name) await this.#addKeys(storedOutputs(rows));
  }

  /** Returns what the manifest tells of the tables, and the keys, once the disk has all of it. */
  async end(): Promise<Pick<Manifest, 'tables'> & { keys: Keys }> {
    const tables: Manifest['tables'] = [];
    for (const table of this.#tables) {
      const writer = this.#writerOf(table.name);
      tables.push({ ...table, rows: writer.rows, ...(await writer.end()) });
    }
    return { tables, keys: { count: this.#keys.rows, list: await this.#keys.end() } };
  }

  /** Closes all files, whatever is in them. After `end` nothing happens. */
  abandon(): void {
    for (const writer of [this.#keys, ...this.#writers.values()]) writer.abandon();
  }

  async #addParts(table: GrowingTable, rows: string): Promise<void> {
    if (table.parts) await this.#add(table.parts.name, rowsOfParts(table, rows));
  }

  async #addKeys(keys: string): Promise<void> {
    await this.#keys.add(this.#client, `copy (${keys}) to stdout`);
  }

  async #add(name: string, rows: string, values: Record<string, string> = {}): Promise<void> {
    const at = this.#tables.findIndex((table) => table.name === name);
    this.#progress.say(`${at + 1} of ${this.#tables.length} tables, ${name}`);
    const columns = this.#tables[at]?.columns.map((column) => values[column] ?? `r.${pg.escapeIdentifier(column)}`);
    await this.#writerOf(name).add(this.#client, `copy (select ${columns?.join(', ')} from ${rows} r) to stdout`);
  }

  #writerOf(name: string): TableWriter {
    const writer = this.#writers.get(name);
    assert(writer, 'a table of the backup has its file');
    return writer;
  }
}
