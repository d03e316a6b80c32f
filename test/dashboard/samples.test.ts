import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseSync } from 'oxc-parser';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { samplesIn, type Sample } from '../../web/src/ui/languages.ts';

/** Programs of the dashboard are right in their language, whatever somebody wrote into the form. */

const hostile = [
  'plain',
  `quotes ' " \` and \\ and \\' \\" \\\` $HOME \${x} #{x} %s`,
  'lines\nand\r\nmore\ttabs\u0000\u001b',
  '"""\n"""" """"""',
  'JSON;\nJSON\n$x',
  '\u2028\u2029\ufeff\u0085 \u{1f600} \ud800',
  '\\u0041 \\\\u0041 */ <?php ?> </script>',
  '`` + "`" + ``',
].join(' | ');

const url = 'http://127.0.0.1:8787/v1/generate?wait=300';

const all = [
  {
    kind: 'a media model',
    samples: samplesIn({
      url,
      body: { model: 'sandbox/image', input: { prompt: hostile, [hostile]: [hostile, 1, 0.5, true, null, {}, []] } },
      shown: [['status'], ['output'], ['cost']],
    }),
  },
  {
    kind: 'a chat',
    samples: samplesIn({
      url,
      body: { model: 'sandbox/chat', messages: [{ role: 'user', content: hostile }] },
      shown: [['choices', 0, 'message', 'content']],
    }),
  },
];

/** Tools that check a program without running it. One that is not on this machine checks nothing. */
const checkers: Record<string, { file: string; command: string; arguments: string[] }> = {
  curl: { file: 'call.sh', command: 'bash', arguments: ['-n', 'call.sh'] },
  Python: { file: 'call.py', command: 'python3', arguments: ['-m', 'py_compile', 'call.py'] },
  Go: { file: 'main.go', command: 'gofmt', arguments: ['-l', '-e', 'main.go'] },
  Java: { file: 'Main.java', command: 'javac', arguments: ['-d', '.', 'Main.java'] },
  PHP: { file: 'call.php', command: 'php', arguments: ['-l', 'call.php'] },
};

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'medley-samples-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

function problemsIn({ name, text }: Sample): string[] {
  const checker = checkers[name];
  if (!checker) return parseSync('call.ts', text).errors.map(({ message }) => message);
  if (spawnSync(checker.command, ['--version']).error !== undefined) return [];
  writeFileSync(join(folder, checker.file), text);
  const { status, stderr, stdout } = spawnSync(checker.command, checker.arguments, { cwd: folder, encoding: 'utf8' });
  return status === 0 ? [] : [`${name}: ${stderr} ${stdout}`];
}

describe.each(all)('the programs of $kind', ({ samples }) => {
  it('are in six languages', () => {
    expect(samples.map(({ name }) => name)).toEqual(['curl', 'Python', 'TypeScript', 'Go', 'Java', 'PHP']);
  });

  it('are accepted by the tools of their language', () => {
    expect(samples.flatMap((sample) => problemsIn(sample))).toEqual([]);
  });

  it('send what the form has: the request of each is the same JSON', () => {
    const sent = samples.flatMap(({ name, text }) => (name in bodies ? [bodies[name]?.(text)] : []));
    expect(sent.length).toBe(4);
    const [first, ...others] = sent.map((body) => JSON.parse(body ?? ''));
    expect(JSON.stringify(first)).toContain('plain');
    for (const other of others) expect(other).toEqual(first);
  });
});

/** Returns the JSON in a program, by the rules of its language. */
const bodies: Record<string, (text: string) => string> = {
  curl: (text) => between(text, "-d '", "'", -1).replaceAll(`'\\''`, "'"),
  Go: (text) => between(text, 'const body = `', '`\n\nfunc').replaceAll('` + "`" + `', '`'),
  Java: (text) =>
    between(text, '"""\n', '\n        """')
      .replaceAll('\n        ', '\n')
      .replaceAll(/\\(["\\])/g, '$1'),
  PHP: (text) => between(text, "<<<'JSON'\n", '\nJSON;\n'),
};

function between(text: string, start: string, end: string, last?: -1): string {
  const from = text.indexOf(start) + start.length;
  return text.slice(from, last ? text.lastIndexOf(end) : text.indexOf(end, from));
}
