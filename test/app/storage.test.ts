import { spawnSync } from 'node:child_process';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { refuseUnsharedDisk } from '../../src/app/storage.ts';
import { testDatabase } from '../helpers/database.ts';
import { clusterFolder, removeFolder } from '../helpers/embedded.ts';

const external = { database_url: 'postgres://db.example.com/medley', role: 'all' } as const;
const disk = { type: 'disk', shared: false } as const;
const bucket = { type: 's3', bucket: 'b', prefix: '', force_path_style: false, links: 'through' } as const;
const alone = { nodes: async () => [] };
const among = (host: string, silent_ms: number) => ({ nodes: async () => [{ host, role: 'all', silent_ms }] });
const at_once = { patience_ms: 0 };

test.each([
  ['one node with the embedded database', { ...external, database_url: undefined }, disk, alone],
  ['one node with a database of its own', external, disk, alone],
  ['nodes of one machine', external, disk, among(hostname(), 0)],
  ['a node whose predecessor is silent', external, disk, among('elsewhere', 16_000)],
  ['nodes of a shared disk', { ...external, role: 'api' }, { type: 'disk', shared: true }, among('elsewhere', 0)],
  ['nodes with a bucket', { ...external, role: 'worker' }, bucket, among('elsewhere', 0)],
] as const)('%s may start', async (_, config, settings, nodes) => {
  await expect(refuseUnsharedDisk(config, settings, nodes, at_once)).resolves.toBeUndefined();
});

test.each([
  ['a node with a part of the roles', { ...external, role: 'api' }, alone, 'MEDLEY_ROLE is api'],
  ['a node beside one of another machine', external, among('elsewhere', 0), 'A node on elsewhere uses this database'],
] as const)('%s does not start without a place for files that all share', async (_, config, nodes, message) => {
  const refused = refuseUnsharedDisk(config, disk, nodes, at_once);
  await expect(refused).rejects.toThrow(message);
  await expect(refused).rejects.toThrow('storage: { shared: true }');
});

test('a node waits until the one before it is silent', async () => {
  let looks = 0;
  const leaving = { nodes: async () => (looks++ === 0 ? [{ host: 'elsewhere', role: 'all', silent_ms: 14_800 }] : []) };
  await refuseUnsharedDisk(external, disk, leaving);
  expect(looks).toBe(2);
});

test('the service says so in one sentence and ends', async () => {
  const database = await testDatabase();
  const folder = clusterFolder();
  const env = {
    PATH: process.env['PATH'],
    DATABASE_URL: database.url,
    MEDLEY_DATA: join(folder, 'data'),
    MEDLEY_ROLE: 'worker',
  };
  const main = join(import.meta.dirname, '../../src/main.ts');
  const { status, stdout, stderr } = spawnSync(process.execPath, [main], { env, encoding: 'utf8' });
  expect([status, stdout]).toEqual([1, '']);
  expect(stderr.trimEnd()).toMatch(
    /^MEDLEY_ROLE is worker, so that there are several nodes, and each needs the same files\. .*$/,
  );
  await database.drop();
  removeFolder(folder);
});
