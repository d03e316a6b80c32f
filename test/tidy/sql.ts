import type { Node } from 'oxc-parser';
import { moduleOf, modules } from './imports.ts';
import { inSource, lineAt, memberName, walk, type Finding, type Rule, type Source, type Tree } from './tree.ts';

/** Owners: names of tables and of SQL functions with their module. */
type Owners = { tables: Map<string, string>; functions: Map<string, string> };

type Declaration = { file: string; line: number; kind: 'table' | 'function'; name: string; module: string | undefined };

/** A piece of text that is sent to the database: `offset` is its place in the source. */
type Literal = { text: string; offset: number };

const creation =
  /^create (?:or replace )?(?:unlogged )?(table|view|function|procedure) (?:if not exists )?(?:public\.)?((?:\w+\.)?"?\w+)/i;
const renaming = /^alter (table) \w+ rename to (\w+)/i;

/** Functions and views that only nodes of the version before this one use: in no module, so that no source may name them. */
const former = 'former';

export const declared_modules: Rule = {
  name: 'table owner',
  findings: (tree) =>
    migrationDeclarations(tree)
      .filter(({ module }) => module === undefined || !(modules.includes(module) || module === former))
      .map(({ file, line, kind, name }) => ({
        file,
        line,
        advice: `write "-- module: NAME" with the module that owns ${kind} ${name} into the comment above it`,
      })),
};

/** Returns the declarations in migrations, with the module of the comment above, and in sql/functions, with that of the folder. */
function declarations(tree: Tree): Declaration[] {
  const functions = functionFiles(tree).map(({ path, folder, name }): Declaration => ({
    file: path,
    line: 1,
    kind: 'function',
    name,
    module: folder,
  }));
  return [...migrationDeclarations(tree), ...functions];
}

function migrationDeclarations(tree: Tree): Declaration[] {
  return [...tree.files]
    .filter(([path]) => /^sql\/migrations\/.*\.sql$/.test(path))
    .flatMap(([file, text]) => {
      const lines = text.split('\n');
      return lines.flatMap((line, index): Declaration[] => {
        const match = creation.exec(line) ?? renaming.exec(line);
        if (!match) return [];
        const kind = /table|view/i.test(match[1] ?? '') ? 'table' : 'function';
        return [{ file, line: index + 1, kind, name: nameOf(match[2]), module: moduleAbove(lines, index) }];
      });
    });
}

function functionFiles(tree: Tree): { path: string; folder: string; name: string; text: string }[] {
  return [...tree.files].flatMap(([path, text]) => {
    const [, folder = '', name = ''] = /^sql\/functions\/([^/]+)\/(\w+)\.sql$/.exec(path) ?? [];
    return name === '' ? [] : [{ path, folder, name, text }];
  });
}

export const function_files: Rule = {
  name: 'sql function',
  findings: (tree) =>
    functionFiles(tree).flatMap(({ path, folder, name, text }): Finding[] => {
      const advice =
        folder !== former && !modules.includes(folder)
          ? `move it to the folder of the module that owns it; there is no module ${folder}`
          : adviceOn(name, text);
      return advice === undefined ? [] : [{ file: path, line: 1, advice }];
    }),
};

function adviceOn(name: string, text: string): string | undefined {
  const creations = [...text.matchAll(/^create (or replace )?(\w+) (\w+)/gim)];
  const functions = creations.filter(([, , kind]) => kind === 'function');
  if (functions.length !== 1 || functions[0]?.[3] !== name) return `create the function ${name}, and no other one`;
  if (creations.some(([, replaces, kind]) => !replaces || (kind !== 'function' && kind !== 'trigger'))) {
    return 'use "create or replace" of a function and its triggers only: the file is applied again when it changes';
  }
  if (/^return\b|^begin atomic\b/m.test(text)) return 'quote the body by $$, so that functions need no order';
  return text.startsWith('-- ') ? undefined : 'begin with a comment: what it does, what it locks, what it returns';
}

function nameOf(written = ''): string {
  return written.replaceAll('"', '').toLowerCase();
}

/** The module named in the comment directly above line `index`: `-- module: money`, `-- room: money` in older migrations. */
function moduleAbove(lines: readonly string[], index: number): string | undefined {
  for (let above = index - 1; above >= 0 && lines[above]?.startsWith('--'); above--) {
    const match = /^-- (?:module|room): ([\w-]+)\s*$/.exec(lines[above] ?? '');
    if (match?.[1]) return match[1];
  }
  return undefined;
}

export const sql_in_its_module: Rule = {
  name: 'sql owner',
  findings: (tree) => {
    const owners = ownersOf(tree);
    return tree.sources.filter((source) => inSource(source.path)).flatMap((source) => foreignSql(source, owners));
  },
};

function ownersOf(tree: Tree): Owners {
  const owners: Owners = { tables: new Map(), functions: new Map() };
  for (const { kind, name, module } of declarations(tree)) {
    if (module !== undefined) (kind === 'table' ? owners.tables : owners.functions).set(name, module);
  }
  for (const source of tree.sources.filter((each) => inSource(each.path))) {
    for (const { text } of sqlOf(source)) {
      const match = /\bcreate table (?:if not exists )?(\w+)/i.exec(text);
      if (match) owners.tables.set((match[1] ?? '').toLowerCase(), moduleOf(source.path));
    }
  }
  return owners;
}

function foreignSql(source: Source, owners: Owners): Finding[] {
  const module = moduleOf(source.path);
  const findings: Finding[] = [];
  const check = (kind: string, name: string, owner: string | undefined, offset: number) => {
    if (owner === undefined || owner === module) return;
    const advice =
      owner === former
        ? `${kind} ${name} is for nodes of the version before this one; use what replaces it`
        : `${kind} ${name} belongs to module ${owner}; call a function of src/${owner} instead`;
    findings.push({ file: source.path, line: lineAt(source.text, offset), advice });
  };
  for (const { text, offset } of sqlOf(source)) {
    for (const { name, at } of tablesIn(text)) check('table', name, tableOwner(name, owners), offset + at);
    for (const match of text.matchAll(/\b(\w+)\s*\(/g)) {
      const name = (match[1] ?? '').toLowerCase();
      check('function', name, owners.functions.get(name), offset + match.index);
    }
  }
  for (const { text, offset } of builderTables(source)) check('table', text, tableOwner(text, owners), offset);
  return findings;
}

/** The tables of jobs are in a schema of their own, made by pg-boss and not by our migrations. */
function tableOwner(name: string, owners: Owners): string | undefined {
  return name.startsWith('pgboss.') ? 'queue' : owners.tables.get(name.replace(/^public\./, ''));
}

const statement =
  /\b(?:select|insert\s+into|update\s+\S+\s+(?:(?:as\s+)?\w+\s+)?set|delete\s+from|merge\s+into|truncate|copy|lock\s+table|(?:create|alter|drop)\s+(?:table|index|unique|view|function|trigger|or))\b/i;
const fragment = /^\s*(?:from|join|(?:left|right|inner|full|cross)\s+(?:outer\s+)?join|where|and|with|union|using)\b/;

/** String and template literals that are SQL, or a piece of it. Placeholders of templates are blanked out. */
function sqlOf(source: Source): Literal[] {
  const literals: Literal[] = [];
  walk(source.program, (node) => {
    if (node.type === 'Literal' && typeof node.value === 'string') {
      literals.push({ text: source.text.slice(node.start + 1, node.end - 1), offset: node.start + 1 });
    } else if (node.type === 'TemplateLiteral') {
      literals.push({ text: templateText(source.text, node), offset: node.start });
    }
  });
  return literals.filter(({ text }) => statement.test(text) || fragment.test(text.replace(/^`/, '')));
}

function templateText(text: string, node: Extract<Node, { type: 'TemplateLiteral' }>): string {
  let shown = '';
  let at = node.start;
  for (const expression of node.expressions) {
    shown += text.slice(at, expression.start) + ' '.repeat(expression.end - expression.start);
    at = expression.end;
  }
  return shown + text.slice(at, node.end);
}

/** Names after from, join, into, update, using, table; for lists (`from a, b`) each of them. */
function tablesIn(sql: string): { name: string; at: number }[] {
  const tables: { name: string; at: number }[] = [];
  for (const match of sql.matchAll(/\b(?:from|join|into|update|using|table|truncate|copy)\s+/gi)) {
    for (const start of listStarts(sql, match.index + match[0].length)) {
      const name = /^(?:only\s+)?((?:"?\w+"?\.)?"?[a-z_]\w*"?)/i.exec(sql.slice(start))?.[1];
      if (name !== undefined) tables.push({ name: name.replaceAll('"', '').toLowerCase(), at: start });
    }
  }
  return tables;
}

const list_end =
  /^(?:where|join|left|right|inner|full|cross|on|order|group|having|limit|offset|set|values|returning|for|union|using|select)\b/i;

/** Returns the starts of the members of the comma-separated list at `start`; brackets are stepped over. */
function listStarts(sql: string, start: number): number[] {
  const starts = [start];
  let depth = 0;
  for (let at = start; at < sql.length && depth >= 0; at++) {
    const character = sql.charAt(at);
    if (character === '(') depth++;
    else if (character === ')') depth--;
    else if (depth > 0) continue;
    else if (character === ';') break;
    else if (character === ',') starts.push(at + 1 + (/^\s*/.exec(sql.slice(at + 1))?.[0].length ?? 0));
    else if (/\s/.test(sql.charAt(at - 1)) && at > start && list_end.test(sql.slice(at, at + 12))) break;
  }
  return starts;
}

const builder_verbs =
  /^(?:selectFrom|insertInto|updateTable|deleteFrom|mergeInto|(?:inner|left|right|full|cross)Join|using)$/;

/** Tables named to the query builder: `db.selectFrom('tasks as t')`. */
function builderTables(source: Source): Literal[] {
  const tables: Literal[] = [];
  walk(source.program, (node) => {
    if (node.type !== 'CallExpression' || !builder_verbs.test(memberName(node.callee) ?? '')) return;
    const [first] = node.arguments;
    const names = first?.type === 'ArrayExpression' ? first.elements : [first];
    for (const name of names) {
      if (name?.type !== 'Literal' || typeof name.value !== 'string') continue;
      tables.push({ text: name.value.split(/\s/)[0] ?? '', offset: name.start });
    }
  });
  return tables;
}
