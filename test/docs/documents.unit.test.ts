import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Command } from 'commander';
import { describe, expect, it } from 'vitest';
import package_json from '../../package.json' with { type: 'json' };
import { defaultModels, defaultProviders, keyName } from '../../src/catalog/default.ts';
import { addCommands } from '../../src/cli/commands.ts';
import { failpoints } from '../../src/lib/failpoint.ts';
import { documentPaths, guidePaths, prose, readDocument, repository, tableRows } from './document.ts';

const readme = readDocument('README.md');

describe.each(guidePaths())('%s', (path) => {
  /** What a person may type or save has to say what becomes of it. */
  it('has no commands, programs or configuration that nothing runs', () => {
    const forgotten = readDocument(path).blocks.filter(({ language, verb }) => language !== 'text' && !verb);
    expect(forgotten.map(({ line, language }) => `${line}: ${language}`)).toEqual([]);
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
    const named = [...document.text.matchAll(/(?:^|`)npm (?:run (?:-s )?)?([a-z]+)/gm)].map(
      ([, script = '']) => script,
    );
    const known = ['run', 'ci', 'install', ...Object.keys(package_json.scripts)];
    expect(named.filter((script) => !known.includes(script))).toEqual([]);
  });

  it('names files that there are', () => {
    const named = [...prose(document).matchAll(/`((?:src|test|scripts|migrations|docs|bench)\/[\w./-]*)`/g)];
    expect(named.map(([, file = '']) => file).filter((file) => !existsSync(join(repository, file)))).toEqual([]);
  });
});

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

describe('README.md', () => {
  it('has every operator command in its table, and no other', async () => {
    const program = new Command('medley');
    await addCommands(program);
    const there = program.commands.flatMap((command) =>
      command.commands.length === 0
        ? [command.name()]
        : command.commands.map((child) => `${command.name()} ${child.name()}`),
    );
    const shown = tableRows(readme, 'Command').flatMap(([words = '']) => {
      const [group = '', verbs] = words.split(' ');
      return verbs === undefined ? [group] : verbs.split('|').map((verb) => `${group} ${verb}`);
    });
    expect(shown.toSorted()).toEqual(there.toSorted());
  });

  it('has every setting of the environment in its table, and no other', () => {
    const config = readFileSync(join(repository, 'src/config.ts'), 'utf8');
    const there = [...config.matchAll(/(?:text\(|env\[)'([A-Z_]+)'/g)].map(([, name = '']) => name);
    const shown = tableRows(readme, 'Variable').flatMap(([names = '']) => names.split(', '));
    // One is for tests, the other is refused until there is something to do with it; the text says so.
    const elsewhere = ['MEDLEY_FAILPOINTS', 'REDIS_URL'];
    expect([...shown, ...elsewhere].toSorted()).toEqual([...new Set(there)].toSorted());
  });

  it('has every key of the default catalogue in its table, and counts its models', () => {
    const there = Object.values(defaultProviders()).map(keyName);
    const shown = tableRows(readme, 'Key').map(([name = '']) => name);
    expect(shown.toSorted()).toEqual(there.toSorted());
    expect(readme.text).toContain(` ${defaultModels().length} current models `);
  });

  it('says of its speed what was measured', () => {
    const folder = join(repository, 'bench/results');
    const measured = readdirSync(folder).map((name) => readFileSync(join(folder, name), 'utf8'));
    const shown = tableRows(readme, 'Per second').flatMap(([, ...figures]) => figures);
    expect(shown.length).toBeGreaterThan(5);
    expect(shown.filter((figure) => !measured.some((text) => text.includes(` ${figure} `)))).toEqual([]);
  });

  it('has every model of the sandbox in its table, with its price', () => {
    const builtin = readFileSync(join(repository, 'src/catalog/builtin.yaml'), 'utf8');
    const there = builtin.split('\n  - id: ').slice(1);
    const priced = there.map((model) => [model.split('\n')[0], /amount: "(.*?)"/.exec(model)?.[1]]);
    const shown = tableRows(readme, 'Model').map(([id = '', , price = '']) => [id, price.split(' ')[0]]);
    expect(shown).toEqual(priced);
  });
});

describe('ARCHITECTURE.md', () => {
  const architecture = readDocument('ARCHITECTURE.md');

  it('has every table of the migrations, with its room', () => {
    const created = migrations().matchAll(/^-- room: (\w+)\ncreate table (?:(\w+)\.)?"?(\w+)/gm);
    const there = new Set(
      [...created].map(([, room = '', schema, table = '']) => `${schema ? `schema ${schema}` : table} ${room}`),
    );
    const shown = tableRows(architecture, 'Table').flatMap(([tables = '', , room = '']) =>
      tables.split(', ').map((table) => `${table} ${room}`),
    );
    expect(shown.toSorted()).toEqual([...there, 'schema pgboss engine'].toSorted());
  });

  it('has every place where a process may die', () => {
    const shown = tableRows(architecture, 'Died').flatMap(
      ([cell = '']) => cell.match(/(?:task|job|file|delivery|sweep)\.\w+/g) ?? [],
    );
    expect(shown.toSorted()).toEqual(failpoints.toSorted());
  });
});

function migrations(): string {
  const names = readdirSync(join(repository, 'migrations'));
  return names.map((name) => readFileSync(join(repository, 'migrations', name), 'utf8')).join('\n');
}
