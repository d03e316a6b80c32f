import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Command } from 'commander';
import { describe, expect, it } from 'vitest';
import package_json from '../../package.json' with { type: 'json' };
import { defaultModels, defaultProviders, keyName } from '../../src/catalog/default.ts';
import { addCommands } from '../../src/cli/commands.ts';
import { failpoints } from '../../src/lib/failpoint.ts';
import {
  documentPaths,
  guidePaths,
  isExample,
  pagesInDocs,
  prose,
  readDocument,
  repository,
  tableRows,
} from './document.ts';
import { modules } from '../tidy/imports.ts';

describe.each(['README.md', 'ARCHITECTURE.md', 'SECURITY.md', ...pagesInDocs()])('%s', (path) => {
  const { blocks, text } = readDocument(path);

  /** Blocks that a person may type or save have to say what becomes of them. */
  it('has no commands, programs or configuration that nothing runs', () => {
    const forgotten = blocks.filter((block) => isExample(block) && !block.verb);
    expect(forgotten.map(({ line, language }) => `${line}: ${language}`)).toEqual([]);
  });

  it('has its code between fences, where it is found', () => {
    const indented = text.split('\n').filter((line, at, lines) => /^ {4}\S/.test(line) && lines[at - 1] === '');
    const fenced = blocks.flatMap((block) => block.text.split('\n'));
    expect(indented.filter((line) => !fenced.includes(line))).toEqual([]);
  });
});

it('a text block that shows a command or a program counts as an example', () => {
  const block = { line: 1, language: 'text', verb: undefined, argument: '' };
  expect(isExample({ ...block, text: 'POST /v1/generate   {"model": "a"}' })).toBe(true);
  expect(isExample({ ...block, text: "import OpenAI from 'openai';" })).toBe(true);
  expect(isExample({ ...block, text: '5 × 0.168 = 0.840000 USD' })).toBe(false);
});

describe('docs/README.md', () => {
  it('links every page in docs/, and the README links it', () => {
    const linked = [...guidePaths(), 'docs/README.md'];
    expect(pagesInDocs().filter((page) => !linked.includes(page))).toEqual([]);
    expect(guidePaths()).toEqual([...new Set(guidePaths())]);
    expect(readDocument('README.md').text).toContain('(docs/README.md)');
  });
});

it('diagrams have no semicolon, which would end a line of a sequence', () => {
  const diagrams = documentPaths().flatMap((path) => readDocument(path).blocks.filter((b) => b.language === 'mermaid'));
  expect(diagrams.length).toBeGreaterThanOrEqual(3);
  expect(diagrams.filter(({ text }) => text.includes(';'))).toEqual([]);
});

describe('the length of a page that is read first', () => {
  it.each([
    ['README.md', 150],
    ['ARCHITECTURE.md', 250],
  ])('%s has at most %d lines', (path, lines_max) => {
    expect(readDocument(path).text.split('\n').length - 1).toBeLessThanOrEqual(lines_max);
  });
});

describe.each(documentPaths())('%s', (path) => {
  const document = readDocument(path);

  it('links to what is there', () => {
    const links = [...prose(document).matchAll(/\]\(([^)\s]+)\)|<img src="([^"]+)"/g)].map(([, a, b]) => a ?? b ?? '');
    const dead = links.filter((link) => !link.startsWith('https://') && !leads(path, link));
    expect(dead).toEqual([]);
  });

  it('names scripts that there are', () => {
    const named = [...document.text.matchAll(/(?:^|`)npm (?:run (?:-s )?)?([a-z]+(?:[:-][a-z0-9]+)*)/gm)].map(
      ([, script = '']) => script,
    );
    const commands = ['run', 'ci', 'install', 'pack', 'publish', ...Object.keys(package_json.scripts)];
    expect(named.filter((script) => !commands.includes(script))).toEqual([]);
  });

  it('names files that there are', () => {
    const text = path === 'CHANGELOG.md' ? prose(document) : document.text; // diagrams name files too
    expect(missingFiles(text)).toEqual([]);
  });
});

/** Paths of this repository in a text; those in links are looked at as links. */
function missingFiles(text: string): string[] {
  const paths = /(?<![\w/.-])(?:src|test|scripts|sql|docs|bench|web)\/[\w/-]+(?:\.[\w-]+)*\/?/g;
  const named = text.replaceAll(/\]\([^)\s]+\)|\w+:\/\/\S+/g, ']').matchAll(paths);
  return [...named].map(([file]) => file).filter((file) => !existsSync(join(repository, file)));
}

it('a path to a file that is not there is found in sentences, code and diagrams', () => {
  expect(missingFiles('see `src/tasks/poll.ts` and src/tasks/poll.ts.')).toEqual([]);
  expect(missingFiles('see `src/tasks/pole.ts` and src/nowhere/.')).toEqual(['src/tasks/pole.ts', 'src/nowhere/']);
  expect(missingFiles('https://example.com/src/nowhere.ts')).toEqual([]);
});

it('every page that the code refers to is there, and so is every part of the specification', () => {
  const planted = 'test/tidy/examples.ts'; // its files are not those of this repository
  const all = ['src', 'test', 'scripts', 'bench', 'web/src'].flatMap(sourcesBelow);
  const sources = all.filter((path) => path !== planted);
  const parts = anchorsOf(readFileSync(join(repository, 'docs/specification.md'), 'utf8'));
  const dead = sources.flatMap((path) => {
    const text = readFileSync(join(repository, path), 'utf8');
    const pages = [...text.matchAll(/(?<![\w/.])docs\/[\w/-]+\.md\b/g)].map(([page]) => page);
    const named_parts = [...text.matchAll(/\bspecification(?: \(| \(part |,? part | )(\d)(?:\.(\d))?/g)];
    const missing_parts = named_parts.filter(
      ([, part = '', section = '']) => !parts.some((anchor) => anchor.startsWith(`${part}${section}-`)),
    );
    return [
      ...pages.filter((page) => !existsSync(join(repository, page))),
      ...missing_parts.map(([words]) => words),
    ].map((reference) => `${path}: ${reference}`);
  });
  expect(sources.length).toBeGreaterThan(500);
  expect(dead).toEqual([]);
});

function sourcesBelow(folder: string): string[] {
  const names = readdirSync(join(repository, folder), { recursive: true, encoding: 'utf8' });
  return names
    .filter((name) => /\.(?:ts|tsx|mjs)$/.test(name) && !/(?:^|\/)(?:node_modules|dist)\//.test(name))
    .map((name) => `${folder}/${name}`);
}

function leads(from: string, link: string): boolean {
  const [path = '', anchor] = link.split('#');
  const target = join(repository, dirname(from), path === '' ? join('.', from.split('/').at(-1) ?? '') : path);
  if (!existsSync(target)) return false;
  return anchor === undefined || anchorsOf(readFileSync(target, 'utf8')).includes(anchor);
}

/** Headings as GitHub names them. */
function anchorsOf(text: string): string[] {
  return [...text.matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  );
}

describe('the tables of the guides', () => {
  it('have every operator command, and no other', async () => {
    const program = new Command('medley');
    await addCommands(program);
    const there = program.commands.flatMap((command) =>
      command.commands.length === 0
        ? [command.name()]
        : command.commands.map((child) => `${command.name()} ${child.name()}`),
    );
    const shown = tableRows(readDocument('docs/operate.md'), 'Command').flatMap(([words = '']) => {
      const [group = '', verbs] = words.split(' ');
      return verbs === undefined ? [group] : verbs.split('|').map((verb) => `${group} ${verb}`);
    });
    expect(shown.toSorted()).toEqual(there.toSorted());
  });

  it('have every setting of the environment, and no other', () => {
    const config = readFileSync(join(repository, 'src/config.ts'), 'utf8');
    const there = [...config.matchAll(/(?:text\(|env\[)'([A-Z_]+)'/g)].map(([, name = '']) => name);
    const shown = tableRows(readDocument('docs/deploy.md'), 'Variable').flatMap(([names = '']) => names.split(', '));
    // One is for tests, the other is refused until there is something to do with it; the text says so.
    const elsewhere = ['MEDLEY_FAILPOINTS', 'REDIS_URL'];
    expect([...shown, ...elsewhere].toSorted()).toEqual([...new Set(there)].toSorted());
  });

  it('have every key of the default catalogue, and count its models', () => {
    const providers = readDocument('docs/providers.md');
    const there = Object.values(defaultProviders()).map(keyName);
    const shown = tableRows(providers, 'Key').map(([name = '']) => name);
    expect(shown.toSorted()).toEqual([...new Set(there)].toSorted()); // Google has two providers for one key
    expect(providers.text).toContain(` ${defaultModels().length} current models`);
    expect(readDocument('README.md').text).toContain(`**Models**: ${defaultModels().length} that need`);
  });

  it('show the speed that was measured', () => {
    const folder = join(repository, 'bench/results');
    const measured = readdirSync(folder).map((name) => readFileSync(join(folder, name), 'utf8'));
    const shown = tableRows(readDocument('docs/performance.md'), 'Per second').flatMap(([, ...figures]) => figures);
    expect(shown.length).toBeGreaterThan(5);
    expect(shown.filter((figure) => !measured.some((text) => text.includes(` ${figure} `)))).toEqual([]);
  });

  it('have every model of the sandbox, with its price', () => {
    const builtin = readFileSync(join(repository, 'src/catalog/builtin.yaml'), 'utf8');
    const there = builtin.split('\n  - id: ').slice(1);
    const priced = there.map((model) => [model.split('\n')[0], /amount: "(.*?)"/.exec(model)?.[1]]);
    const shown = tableRows(readDocument('docs/sandbox.md'), 'Model').map(([id = '', , price = '']) => [
      id,
      price.split(' ')[0],
    ]);
    expect(shown).toEqual(priced);
  });
});

describe('ARCHITECTURE.md', () => {
  const architecture = readDocument('ARCHITECTURE.md');

  it('has every table of the migrations, with its module', () => {
    const created = migrations().matchAll(/^-- (?:module|room): ([\w-]+)\ncreate table (?:(\w+)\.)?"?(\w+)/gm);
    const renamed = [...migrations().matchAll(/^alter table (\w+) rename to (\w+);/gm)];
    const nameNow = (table: string) => renamed.find(([, before]) => before === table)?.[2] ?? table;
    const there = new Set(
      [...created].map(
        ([, module = '', schema, table = '']) => `${schema ? `schema ${schema}` : nameNow(table)} ${module}`,
      ),
    );
    const shown = tableRows(architecture, 'Table').flatMap(([tables = '', , module = '']) =>
      tables.split(', ').map((table) => `${table} ${module}`),
    );
    expect(shown.toSorted()).toEqual([...there, 'schema pgboss queue'].toSorted());
  });
});

it('a name that ARCHITECTURE.md says is in a file is in that file', () => {
  const { text } = readDocument('ARCHITECTURE.md');
  const claims = [...text.matchAll(/((?:`\w+`(?:, | and |, and ))*`\w+`) in `([\w/.-]+)`/g)];
  const named = claims.flatMap(([, names = '', file = '']) => names.match(/\w{3,}/g)?.map((name) => ({ name, file })));
  const wrong = named.filter((claim) => claim && !textBelow(claim.file).includes(claim.name));
  expect(named.length).toBeGreaterThan(15);
  expect(wrong).toEqual([]);
});

it('a name of a function, a table or a field in ARCHITECTURE.md is a name in the code', () => {
  const { text } = readDocument('ARCHITECTURE.md');
  const names = [...text.matchAll(/`([a-z]+(?:[A-Z]|_[a-z])\w*)`/g)].map(([, name = '']) => name);
  const code = ['sql/schema.sql', ...['src', 'scripts', 'web/src'].flatMap(sourcesBelow)].map(textBelow).join('\n');
  const words = new Set(code.match(/\w+/g));
  expect(names.length).toBeGreaterThan(50);
  expect(names.filter((name) => !words.has(name))).toEqual([]);
});

/** The text of a file, or of all files in a folder. */
function textBelow(path: string): string {
  const target = join(repository, path);
  if (!path.endsWith('/')) return readFileSync(target, 'utf8');
  return readdirSync(target)
    .map((name) => readFileSync(join(target, name), 'utf8'))
    .join('\n');
}

it('ARCHITECTURE.md has every module, in the order of imports', () => {
  const shown = tableRows(readDocument('ARCHITECTURE.md'), 'Module').flatMap(([cell = '']) => cell.split(', '));
  expect(shown).toEqual(modules);
});

describe('docs/reliability.md', () => {
  it('has every place where a process may die', () => {
    const shown = tableRows(readDocument('docs/reliability.md'), 'Died at').flatMap(
      ([cell = '']) => cell.match(/(?:task|job|file|upload|delivery|sweep|response|batch)\.\w+/g) ?? [],
    );
    expect(shown.toSorted()).toEqual(failpoints.toSorted());
  });
});

function migrations(): string {
  const folder = join(repository, 'sql/migrations');
  const names = readdirSync(folder);
  return names.map((name) => readFileSync(join(folder, name), 'utf8')).join('\n');
}
