import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, expect, it } from 'vitest';
import { signedHeaders } from '../../src/webhooks/sign.ts';
import { verify_snippets } from '../../web/src/pages/webhooks/verify.ts';

const run = promisify(execFile);
const folder = mkdtempSync(join(tmpdir(), 'medley-verify-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const secrets = [7, 8].map((byte) => `whsec_${Buffer.alloc(32, byte).toString('base64')}`) as [string, string];
const body = '{"id":"task_1","text":"Zażółć"}';
const now_ms = Date.now();

function signed(sent_at_ms: number, by: readonly [string, string?]): Record<string, string> {
  const message = { id: 'dlv_1', event: 'task.succeeded', body: Buffer.from(body), sent_at_ms };
  return signedHeaders(message, by[1] === undefined ? [by[0]] : [by[0], by[1]]);
}

/** Body, headers, and whether a receiver that knows the first secret takes it. */
const cases: [string, Record<string, string>, boolean][] = [
  [body, signed(now_ms, [secrets[0]]), true],
  [body, signed(now_ms, [secrets[1], secrets[0]]), true],
  [body, signed(now_ms, [secrets[1]]), false],
  [`${body} `, signed(now_ms, [secrets[0]]), false],
  [body, { ...signed(now_ms, [secrets[0]]), 'webhook-id': 'dlv_2' }, false],
  [body, signed(now_ms - 3_600_000, [secrets[0]]), false],
  [body, { ...signed(now_ms, [secrets[0]]), 'webhook-timestamp': 'soon' }, false],
  [body, {}, false],
];
const expected = cases.map(([, , fits]) => fits);
writeFileSync(join(folder, 'cases.json'), JSON.stringify(cases));

function textOf(name: string): string {
  const match = verify_snippets.find((snippet) => snippet.name === name);
  if (!match) throw new Error(`there is no snippet for ${name}`);
  return match.text;
}

async function isThere(program: string, ...words: string[]): Promise<boolean> {
  return run(program, words).then(
    () => true,
    () => false,
  );
}

it('there is a verification snippet for each of four languages', () => {
  expect(verify_snippets.map(({ name }) => name)).toEqual(['Node', 'Python', 'Go', 'PHP']);
});

const secret = JSON.stringify(secrets[0]);

type SnippetRun = { language: string; file: string; rest: string; program: string; words: string[]; check: string[] };

/** Programs that answer for each case whether the snippet takes it. */
const runs: SnippetRun[] = [
  {
    language: 'Node',
    file: 'verify.mjs',
    rest: `
import { readFileSync } from 'node:fs';
const cases = JSON.parse(readFileSync('cases.json', 'utf8'));
console.log(JSON.stringify(cases.map(([body, headers]) => verify(Buffer.from(body), headers, ${secret}))));`,
    program: process.execPath,
    words: ['verify.mjs'],
    check: ['--version'],
  },
  {
    language: 'Python',
    file: 'verify.py',
    rest: `

import json
with open("cases.json") as file:
    cases = json.load(file)
print(json.dumps([verify(body.encode(), headers, ${secret}) for body, headers, _ in cases]))
`,
    program: 'python3',
    words: ['verify.py'],
    check: ['-c', 'import sys; assert sys.version_info >= (3, 9)'],
  },
  {
    language: 'PHP',
    file: 'verify.php',
    rest: `
$cases = json_decode(file_get_contents('cases.json'), true);
echo json_encode(array_map(fn ($case) => verify($case[0], $case[1], ${secret}), $cases));
`,
    program: 'php',
    words: ['verify.php'],
    check: ['--version'],
  },
];

const is_there = await Promise.all(runs.map(({ program, check }) => isThere(program, ...check)));

it.each(runs.filter((_, index) => is_there[index]))(
  'the snippet for $language accepts what is signed and nothing else',
  async ({ language, file, rest, program, words }) => {
    writeFileSync(join(folder, file), textOf(language) + rest);
    const { stdout } = await run(program, words, { cwd: folder });
    expect(JSON.parse(stdout)).toEqual(expected);
  },
);

/** Go compiles its whole library first, for minutes: where it is installed, it only reads the snippet. */
const readers = (await isThere('gofmt', '-h')) ? ['gofmt'] : [];

it.each(readers)('the snippet for Go is well formed, by %s', async (gofmt) => {
  writeFileSync(join(folder, 'verify.go'), `${textOf('Go')}\n`);
  const { stdout } = await run(gofmt, ['-d', '-e', 'verify.go'], { cwd: folder });
  expect(stdout).toBe('');
});
