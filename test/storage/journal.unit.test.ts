import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { JournalFull, openJournal, readJournals } from '../../src/storage/journal.ts';

let data_dir: string;
beforeEach(() => {
  data_dir = mkdtempSync(join(tmpdir(), 'medley-journal-'));
});
afterEach(() => rmSync(data_dir, { recursive: true, force: true }));

const entryOf = (n: number) => ({
  id: `end ${n}`,
  at: new Date(n).toISOString(),
  body: { cost: BigInt(n), name: 'é' },
});
const files = () => readdirSync(join(data_dir, 'journal')).map((name) => join(data_dir, 'journal', name));

it('a journal writes nothing to disk before there is an entry, and leaves no file when all is done', async () => {
  const journal = openJournal(data_dir);
  await journal.adopt();
  expect(readdirSync(data_dir)).toEqual([]);
  await Promise.all([1, 2, 3].map((n) => journal.write([entryOf(n)])));
  expect(journal.pending()).toEqual([1, 2, 3].map(entryOf));
  expect(await readJournals(data_dir)).toEqual([1, 2, 3].map(entryOf));
  expect(files().map((path) => statSync(path).mode & 0o777)).toEqual([0o600]);
  await journal.done(['end 1', 'end 3']);
  expect(await readJournals(data_dir)).toEqual([entryOf(2)]);
  await journal.done(['end 2']);
  expect(files()).toEqual([]);
  await journal.write([entryOf(4)]);
  expect(await readJournals(data_dir)).toEqual([entryOf(4)]);
  await journal.close();
});

it('the journal of a dead process is adopted once, without the line that it could not finish', async () => {
  const dead = openJournal(data_dir);
  await dead.write([entryOf(1), entryOf(2)]);
  const [path = ''] = files();
  appendFileSync(path, '0a0b0c0d {"id":"end 3","at":"19');
  const living = openJournal(data_dir);
  expect(await living.adopt()).toBe(0); // it lives
  await dead.close();
  const counts = await Promise.all([living.adopt(), openJournal(data_dir).adopt()]);
  expect(counts.toSorted()).toEqual([0, 2]);
  expect(await readJournals(data_dir)).toEqual([entryOf(1), entryOf(2)]);
});

it('a journal of another machine or a reused process id is adopted after a minute without a write', async () => {
  const dead = openJournal(data_dir);
  await dead.write([entryOf(1)]);
  await dead.close();
  const [path = ''] = files();
  const bytes = readFileSync(path);
  rmSync(path);
  const elsewhere = join(data_dir, 'journal', 'elsewhere.1.0.0.jsonl');
  const anew = join(data_dir, 'journal', `${hostname().replaceAll(/[^\w-]/g, '_')}.${process.ppid}.0.0.jsonl`);
  for (const place of [elsewhere, anew]) writeFileSync(place, bytes);
  const journal = openJournal(data_dir);
  expect(await journal.adopt()).toBe(0);
  const past = new Date(Date.now() - 61_000);
  for (const place of [elsewhere, anew]) utimesSync(place, past, past);
  expect(await journal.adopt()).toBe(2);
  expect(journal.pending()).toEqual([entryOf(1)]);
  await journal.done(['end 1']);
  expect(await readJournals(data_dir)).toEqual([]);
  await journal.close();
});

it('a journal that cannot be read keeps its name and keeps nobody from the others', async () => {
  const dead = openJournal(data_dir);
  await dead.write([entryOf(1)]);
  await dead.close();
  const unreadable = join(data_dir, 'journal', 'elsewhere.1.0.0.jsonl'); // a folder cannot be read as a file
  mkdirSync(unreadable);
  const past = new Date(Date.now() - 61_000);
  utimesSync(unreadable, past, past);
  const journal = openJournal(data_dir);
  expect(await journal.adopt()).toBe(1);
  expect(journal.pending()).toEqual([entryOf(1)]);
  expect(files()).toContain(unreadable);
  await journal.close();
});

it('a process that was taken for dead writes to a new file of its own', async () => {
  const journal = openJournal(data_dir);
  await journal.write([entryOf(1)]);
  for (const path of files()) rmSync(path); // adopted, and done
  await journal.write([entryOf(2)]);
  expect(await readJournals(data_dir)).toEqual([entryOf(2)]);
  await journal.close();
});

it('a full journal accepts no more entries and loses none', async () => {
  const journal = openJournal(data_dir, { bytes_max: 300 });
  await journal.write([entryOf(1), entryOf(2)]);
  await expect(journal.write([entryOf(3), entryOf(4)])).rejects.toThrow(JournalFull);
  expect(await readJournals(data_dir)).toEqual([entryOf(1), entryOf(2)]);
  await journal.done(['end 1', 'end 2']);
  await journal.write([entryOf(3)]);
  expect(journal.pending()).toEqual([entryOf(3)]);
  await journal.close();
});

it('one entry that stays does not fill the journal with those that are done, and no file grows beyond the bound', async () => {
  const journal = openJournal(data_dir, { bytes_max: 400 });
  await journal.write([entryOf(1)]);
  for (let n = 2; n < 40; n++) {
    await journal.write([entryOf(n)]);
    await journal.done([`end ${n}`]);
    expect(files().reduce((sum, path) => sum + statSync(path).size, 0)).toBeLessThan(2 * 400);
  }
  expect(journal.pending()).toEqual([entryOf(1)]);
  expect(await readJournals(data_dir)).toEqual([entryOf(1)]);
  await journal.close();
});

it('a journal reports a disk that cannot be written, and works again when it can', async () => {
  writeFileSync(join(data_dir, 'journal'), 'a file where the folder should be');
  const journal = openJournal(data_dir);
  await expect(journal.write([entryOf(1)])).rejects.toThrow(/EEXIST|ENOTDIR/);
  expect(journal.pending()).toEqual([]);
  rmSync(join(data_dir, 'journal'));
  await journal.write([entryOf(1)]);
  expect(journal.pending()).toEqual([entryOf(1)]);
  await journal.close();
});
