import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { clusterFolder, removeFolder } from '../helpers/embedded.ts';
import { startTestApp, type TestApp } from '../helpers/app.ts';
import { testDatabase, type TestDatabase } from '../helpers/database.ts';
import { S3Imitation } from '../storage/s3/imitation.ts';
import { storageYaml } from '../storage/s3/subject.ts';
import { commandsBeside, medleySoon, readObject, type Commands } from './medley.ts';

let folder = '';
let imitation: S3Imitation;
let service: TestApp;
let commands: Commands;
let database: TestDatabase;

beforeAll(async () => {
  folder = clusterFolder();
  imitation = await S3Imitation.start();
  database = await testDatabase({ state: 'empty' });
  service = await startTestApp({ yaml: `version: 1\n${await storageYaml(imitation, folder, { prefix: 'prod' })}` });
  commands = commandsBeside(service);
});
afterEach(() => {
  imitation.fault = () => undefined;
});
afterAll(async () => {
  await service.stop();
  await database.drop();
  await imitation.stop();
  removeFolder(folder);
});

/** Without those of the service beside it, which may look for unfinished uploads at any time. */
const operationsSince = (before: number) =>
  imitation.operations.slice(before).filter((name) => name !== 'ListMultipartUploads');

const place = 's3://files-of-tests/prod/';
const checkOf = async (words: string[] = []) => {
  const { config_file = '', data_dir, database_url = '' } = service.app.config;
  const env = { MEDLEY_CONFIG: config_file, MEDLEY_DATA: data_dir, DATABASE_URL: database_url };
  const result = await medleySoon(['config', 'check', ...words, '--json'], env);
  const { ok, errors, warnings } = readObject(result.out);
  return { code: result.code, ok, errors, warnings };
};

describe('commands of an installation with a bucket', () => {
  it('find the bucket in order as doctor and as config check, and leave nothing in it', async () => {
    expect((await commands.text('doctor')).out).toMatch(new RegExp(`^ok {4}storage: files are in ${place};`, 'm'));
    expect(await checkOf()).toMatchObject({ code: 0, errors: [], warnings: [] });
    expect([...imitation.objects.keys()]).toEqual([]);
  });

  it('tell of a bucket that refuses as of a mistake, and of one that is away as of a warning', async () => {
    imitation.fault = () => 'denied';
    const refused = await checkOf();
    expect(refused).toMatchObject({ code: 2, ok: false, warnings: [] });
    expect(refused.errors).toEqual([expect.stringMatching(/^storage\.s3: s3:\/\/\S+ cannot be used: AccessDenied/)]);
    imitation.fault = () => 'reset';
    const away = await checkOf();
    expect(away).toMatchObject({ code: 0, ok: true, errors: [] });
    expect(away.warnings).toEqual([expect.stringMatching(/^storage\.s3: s3:\/\/\S+ cannot be reached: /)]);
    const result = await commands.text('doctor');
    expect([result.code, result.out]).toEqual([1, expect.stringMatching(/FAIL {2}storage: s3:/)]);
  });

  it('do not look at it with --offline', async () => {
    const before = imitation.operations.length;
    expect(await checkOf(['--offline'])).toMatchObject({ code: 0, errors: [], warnings: [] });
    expect(operationsSince(before)).toEqual([]);
  });

  it('back up the database and a list of the files, which stay where they are, and restore it beside them', async () => {
    const client = await service.client();
    const input = { model: 'sandbox/image', input: { prompt: 'a' } };
    const { json: task } = await client.call('POST', '/v1/generate?wait=30', input);
    const dir = join(folder, 'backup');
    const before = imitation.operations.length;
    const result = await commands.text('backup', dir);
    expect(result.out).toContain('a list of 1 file,');
    expect(result.out).toContain(`The files stay in ${place}`);
    expect(operationsSince(before)).toEqual([]);
    expect(readFileSync(join(dir, 'files.keys'), 'utf8')).toBe(`${client.account_id}/${task.id}/0.png\n`);
    const checked = await commands.text('restore', dir, '--check', '--json');
    expect(readObject(checked.out)).toMatchObject({
      ok: true,
      files: 0,
      bucket: { place, files: 1 },
    });
    const { config_file = '' } = service.app.config;
    const into = { DATABASE_URL: database.url, MEDLEY_DATA: join(folder, 'restored'), MEDLEY_CONFIG: config_file };
    const restored = await medleySoon(['restore', dir], into);
    expect([restored.code, restored.error.includes('Error')]).toEqual([0, false]);
    expect(restored.out).not.toContain('stayed in');
  });
});
