import { cpSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import typescript_package from '../../clients/typescript/package.json' with { type: 'json' };
import { readDocument, repository } from '../docs/document.ts';
import { matches } from '../docs/matches.ts';
import { expectExactBooks, startTestApp, type TestApp } from '../helpers/app.ts';
import { local_clients } from '../helpers/catalog.ts';
import { serveAccounts, type Accounts } from './accounts.ts';
import { environmentWith, findPythons, pipInstall, requirements, run, type Python } from './environments.ts';

/** For npm run test:python. */

/** The oldest that pyproject.toml allows, beside the oldest Python. */
const httpx_min = '0.27.0';

const pythons = await findPythons();
const [oldest] = pythons;
const newest: Python = pythons.at(-1) ?? oldest;

let service: TestApp;
let accounts: Accounts;
let folder: string;
/** A copy of the client: nothing is written beside its sources. */
let source: string;
/** The Python with the packages of the suite. */
let tools: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'medley-python-suite-'));
  source = join(folder, 'source');
  cpSync(join(repository, 'clients/python'), source, { recursive: true });
  tools = await environmentWith(newest, requirements());
  service = await startTestApp({ yaml: local_clients });
  accounts = await serveAccounts(service);
});
afterAll(async () => {
  await accounts?.stop();
  await service?.stop();
  rmSync(folder, { recursive: true, force: true });
});
afterEach(() => expectExactBooks(service.app));

const uses = [
  { python: newest, httpx: undefined },
  { python: oldest, httpx: httpx_min },
];

describe('the Python client', () => {
  test.each(uses)('passes its tests with $python.version, httpx $httpx', async ({ python, httpx }) => {
    const program = await environmentWith(python, requirements(httpx));
    const env = {
      PYTHONPATH: join(source, 'src'),
      MEDLEY_TEST_URL: service.url,
      MEDLEY_TEST_ACCOUNTS: accounts.url,
      MEDLEY_TEST_OPENAPI: join(repository, 'openapi.json'),
    };
    const flags = ['-q', '-x', '-p', 'no:cacheprovider', '-W', 'error'];
    const words = process.env['MEDLEY_PYTEST']?.split(' ') ?? [];
    const printed = await run(program, ['-m', 'pytest', ...flags, ...words, 'tests'], { cwd: source, env });
    expect(printed).toMatch(/^\d+ passed/m);
    expect(printed).not.toMatch(/skipped|xfailed|warnings/);
  });

  test('has no mistake for mypy --strict and ruff', async () => {
    const cache = ['--cache-dir', join(folder, 'mypy')];
    const check = (...words: string[]) => run(tools, ['-m', ...words], { cwd: source });
    expect(await check('mypy', '--strict', ...cache, 'src', 'tests')).toContain('Success');
    expect(await check('ruff', 'check', '--no-cache', '.')).toContain('All checks passed');
    expect(await check('ruff', 'format', '--no-cache', '--check', '.')).toContain('already formatted');
  });
});

describe('the wheel', () => {
  const { blocks } = readDocument('clients/python/README.md');
  const runs = blocks.filter(({ verb }) => verb === 'run').map((block) => [block.text, block] as const);
  let built_files: string[];
  let python: string;
  let env: Record<string, string>;

  beforeAll(async () => {
    const built = join(folder, 'built');
    await run(tools, ['-m', 'hatchling', 'build', '-d', built], { cwd: source });
    built_files = readdirSync(built).toSorted();
    await run(newest.program, ['-m', 'venv', join(folder, 'empty')]);
    python = join(folder, 'empty/bin/python');
    await pipInstall(python, [join(built, built_files[0] ?? '')]);
    const { key } = await service.client();
    env = { MEDLEY_URL: service.url, MEDLEY_API_KEY: key, PATH: `${join(folder, 'empty/bin')}:/usr/bin:/bin` };
  });

  test('has the licence, the types and no tests, and brings httpx alone', async () => {
    const script = [
      'from importlib.metadata import files, metadata, requires',
      'print(*sorted({str(each).split("/", 1)[-1] for each in files("medley-client")}))',
      'print(requires("medley-client"), metadata("medley-client")["License-Expression"])',
    ];
    const name = `medley_client-${typescript_package.version}`; // a test of npm test compares the versions
    expect(built_files).toEqual([`${name}-py3-none-any.whl`, `${name}.tar.gz`]);
    const printed = await run(python, ['-c', script.join('\n')], { cwd: folder });
    expect(printed).toContain("['httpx<1,>=0.27'] Apache-2.0");
    expect(printed).toMatch(/\blicenses\/LICENSE\b.*\bpy\.typed\b.*\btypes\.py\b/);
    expect(printed).not.toContain('test');
  });

  test('is typed for a program that uses it', async () => {
    const program = [
      'from medley_client import AsyncMedley, Medley, Task',
      'def main(medley: Medley) -> str:',
      '    task: Task = medley.generate("m", {})',
      '    return task["output"][0]["url"]',
      'async def at_once(medley: AsyncMedley) -> list[str]:',
      '    return [task["cost"]["exact"] async for task in medley.tasks.list()]',
    ];
    const check = (text: string[]) => {
      writeFileSync(join(folder, 'program.py'), text.join('\n'));
      const flags = ['--strict', '--cache-dir', join(folder, 'mypy-program'), '--python-executable', python];
      return run(tools, ['-m', 'mypy', ...flags, 'program.py'], { cwd: folder });
    };
    expect(await check(program)).toContain('Success');
    await expect(check([...program, 'def wrong(task: Task) -> int:', '    return task["id"]'])).rejects.toThrow(
      '"str"',
    );
  });

  test('has a README without an example that nothing runs', () => {
    expect(blocks.filter(({ verb }) => !verb)).toEqual([]);
    expect(runs.length).toBeGreaterThanOrEqual(3);
  });

  test.each(runs)('runs the example %s of its README, which prints what is shown', async (command, block) => {
    const place = join(folder, 'readme');
    cpSync(join(source, 'LICENSE'), join(place, 'LICENSE')); // makes the folder
    for (const { verb, argument, text } of blocks) if (verb === 'file') writeFileSync(join(place, argument), text);
    const next = blocks[blocks.indexOf(block) + 1];
    const shown = next?.verb === 'output' ? next : { language: 'text', text: '' };
    const [program = '', ...words] = command.split(' ');
    const printed = await run(program === 'python' ? python : program, words, { cwd: place, env });
    expect(matches(shown.language, shown.text, printed), printed).toBe(true);
  });
});
