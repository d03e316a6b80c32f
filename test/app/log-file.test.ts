import {
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { earlierLogFile, openLogFile } from '../../src/app/log-file.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'medley-log-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const line = (number: number) => `${JSON.stringify({ level: 30, time: 1, number })}\n`;
const linesIn = (path: string) => readFileSync(path, 'utf8').trimEnd().split('\n');

it('the file is in a folder of its own, for this user alone, and has every line in its order', async () => {
  const path = join(folder, 'logs/medley.log');
  const file = openLogFile({ path });
  for (let number = 0; number < 1_000; number++) file.write(line(number));
  await file.flushed();
  expect(linesIn(path).map((each) => JSON.parse(each).number)).toEqual(Array.from({ length: 1_000 }, (_, i) => i));
  expect(statSync(path).mode & 0o777).toBe(0o600);
});

it('two files of bounded size are all that there ever is, also of two writers', async () => {
  const path = join(folder, 'logs/medley.log');
  const files = [openLogFile({ path, size_max: 5_000 }), openLogFile({ path, size_max: 5_000 })];
  for (let number = 0; number < 2_000; number++) {
    for (const file of files) file.write(line(number));
    if (number % 10 === 0) await Promise.all(files.map((file) => file.flushed()));
  }
  await Promise.all(files.map((file) => file.flushed()));
  expect(readdirSync(join(folder, 'logs')).toSorted()).toEqual(['medley.1.log', 'medley.log']);
  for (const each of [path, earlierLogFile(path)]) expect(statSync(each).size).toBeLessThan(10_000);
  expect(JSON.parse(linesIn(path).at(-1) ?? '')).toMatchObject({ number: 1_999 });
});

it('the earlier file has what was in the full one, although several writers see at once that it is full', async () => {
  const path = join(folder, 'medley.log');
  const files = [openLogFile({ path, size_max: 5_000 }), openLogFile({ path, size_max: 5_000 })];
  for (let round = 1; round <= 100; round++) {
    const filling = `${JSON.stringify({ number: round, text: 'x'.repeat(4_950) })}\n`;
    writeFileSync(path, filling);
    for (const file of files) file.write(line(round));
    await Promise.all(files.map((file) => file.flushed()));
    expect(readFileSync(earlierLogFile(path), 'utf8').startsWith(filling)).toBe(true);
    const rest = `${readFileSync(earlierLogFile(path), 'utf8')}${readFileSync(path, 'utf8')}`.replace(filling, '');
    expect(rest.split('\n')).toHaveLength(files.length + 1);
  }
});

it('a lock that a dead process left keeps no file from becoming the earlier one for longer than a minute', async () => {
  const path = join(folder, 'medley.log');
  const file = openLogFile({ path, size_max: 100 });
  const [now_s, full] = [Date.now() / 1_000, 'x'.repeat(200)];
  writeFileSync(`${path}.lock`, '');
  utimesSync(`${path}.lock`, now_s - 120, now_s - 120);
  writeFileSync(path, `${full}\n`);
  for (let number = 0; number < 2; number++) {
    file.write(line(number));
    await file.flushed();
  }
  expect(linesIn(earlierLogFile(path))).toEqual([full, line(0).trimEnd()]);
  expect(linesIn(path)).toEqual([line(1).trimEnd()]);
  expect(readdirSync(folder).toSorted()).toEqual(['medley.1.log', 'medley.log']);
});

it('a full disk loses lines and nothing else, and the next line says how many', async () => {
  const path = join(folder, 'medley.log');
  symlinkSync('/dev/full', path);
  const file = openLogFile({ path });
  file.write(line(1));
  await file.flushed();
  file.write(line(2));
  await file.flushed();
  unlinkSync(path);
  file.write(line(3));
  await file.flushed();
  expect(linesIn(path).map((each) => JSON.parse(each))).toMatchObject([{ level: 40, lines: 2 }, { number: 3 }]);
  file.write(line(4));
  await file.flushed();
  expect(linesIn(path)).toHaveLength(3);
});

it('lines beyond its memory are lost, and counted', async () => {
  const path = join(folder, 'medley.log');
  const file = openLogFile({ path, waiting_max: 500 });
  for (let number = 0; number < 1_000; number++) file.write(line(number));
  await file.flushed();
  file.write(line(1_000));
  await file.flushed();
  const lines = linesIn(path).map((each) => JSON.parse(each));
  const lost = lines.reduce((sum: number, each) => sum + (each.lines ?? 0), 0);
  expect(lost).toBeGreaterThan(900);
  expect(lost + lines.filter(({ number }) => number !== undefined).length).toBe(1_001);
});

it('data that somebody has removed does not come back', async () => {
  const path = join(folder, 'gone/logs/medley.log');
  const file = openLogFile({ path });
  file.write(line(1));
  await file.flushed();
  expect(readdirSync(folder)).toEqual([]);
});
