import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../helpers/app.ts';
import { commandsBeside, commandsOf, medley, medleySoon, readObject } from './medley.ts';

let folder = '';

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'medley-config-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function write(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

const poster = (name: string) => `version: 1
models:
  - id: acme/poster
    kind: image
    name: ${name}
    input_schema: { type: object, required: [prompt], properties: { prompt: { type: string } } }
    price: [{ unit: image, amount: "0.02" }]
    routes: [{ provider: sandbox, upstream_model: image }]
`;

const with_mistakes = `${poster('Poster')}limits: { generate_per_minute: lots }
currencys: { USD: "1" }
`;

describe('config check', () => {
  it('finds nothing wrong in a valid file', async () => {
    const path = write('good.yaml', poster('Poster'));
    const answer = await commandsOf({}, medleySoon).ok('config', 'check', path);
    expect(answer).toEqual({ ok: true, file: path, errors: [], warnings: [] });
    expect((await commandsOf({}, medleySoon).text('config', 'check', path)).out).toBe(`${path} is in order.\n`);
  });

  it('prints every mistake as file:line:col path: message and ends with 2', async () => {
    const path = write('bad.yaml', with_mistakes);
    const result = await medley(['config', 'check', path, '--json'], {});
    expect(result.code).toBe(2);
    const { ok, errors } = readObject(result.out);
    expect(ok).toBe(false);
    expect(errors.map((line) => line.replace(`${path}:`, ''))).toEqual([
      expect.stringMatching(/^9:32 limits\.generate_per_minute: /),
      expect.stringMatching(/^10:1 currencys: .*currencies/),
    ]);
    const text = await commandsOf({}, medleySoon).text('config', 'check', path);
    expect(text).toMatchObject({ code: 2, out: `${errors.join('\n')}\n` });
  });

  it('checks the file of MEDLEY_CONFIG by default, and says when there is none', async () => {
    const path = write('named.yaml', poster('Poster'));
    expect(await commandsOf({ MEDLEY_CONFIG: path }, medleySoon).ok('config', 'check')).toMatchObject({ file: path });
    const result = await medley(['config', 'check', join(folder, 'none.yaml'), '--json'], {});
    expect(result.code).toBe(2);
    expect(readObject(result.out).errors[0]).toContain('none.yaml:1:1 file: cannot be read');
  });
});

describe('reload', () => {
  let service: TestApp;

  beforeAll(async () => {
    service = await startTestApp({ yaml: poster('First') });
  });
  afterAll(() => service.stop());

  it('lets the running service read its file again, and a mistake is reported and changes nothing', async () => {
    const { config_file = '' } = service.app.config;
    const commands = commandsBeside(service);
    const { call } = await service.client();
    const name = async () => (await call('GET', '/v1/models/acme/poster')).json.display_name;
    expect(await name()).toBe('First');

    writeFileSync(config_file, poster('Second'));
    // A command waits for five seconds: a busy service may answer later.
    await expect.poll(async () => (await commands.text('reload')).out).toContain('models');
    expect(await commands.ok('reload')).toMatchObject({ ok: true, nodes: [{ ok: true }] });
    expect(await name()).toBe('Second');

    writeFileSync(config_file, with_mistakes);
    // The command itself reads no configuration: it would not get as far as asking.
    const result = await medley(['reload', '--json'], {
      DATABASE_URL: service.app.config.database_url ?? '',
      MEDLEY_DATA: service.app.config.data_dir,
    });
    expect(result.code).toBe(1);
    const { nodes } = readObject(result.out);
    expect(nodes[0]?.message).toMatch(/^rejected, the old configuration stays:\n.*:9:32 limits\.generate_per_minute: /);
    expect(await name()).toBe('Second');
  });
});
