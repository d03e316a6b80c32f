import { readdirSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { parseSync, visitorKeys, type Comment, type Node, type Program } from 'oxc-parser';

/** One thing to change. `advice` says what to do, not only what is wrong. */
export type Finding = { file: string; line: number; advice: string };

/** A house rule: looks at the whole tree and answers with what breaks it. */
export type Rule = { name: string; findings: (tree: Tree) => Finding[] };

/** The repository as the rules see it; paths are relative to its root, with forward slashes. */
export type Tree = { files: ReadonlyMap<string, string>; sources: readonly Source[] };

/** A parsed TypeScript or JavaScript file. */
export type Source = { path: string; text: string; program: Program; comments: readonly Comment[]; mistakes: string[] };

/** Returns the finding for a person: `src/x.ts:12 rule: what to do`. */
export function show(rule: Rule, finding: Finding): string {
  return `${finding.file}:${finding.line} ${rule.name}: ${finding.advice}`;
}

/** A tree made of texts: the repository's own, or the bad examples that prove that a rule can fail. */
export function treeOf(files: Readonly<Record<string, string>>): Tree {
  const paths = Object.keys(files).toSorted();
  const sources = paths
    .filter((path) => /\.(?:ts|tsx|mjs|js)$/.test(path))
    .map((path) => parse(path, files[path] ?? ''));
  return { files: new Map(Object.entries(files)), sources };
}

function parse(path: string, text: string): Source {
  const { program, comments, errors } = parseSync(path, text);
  return { path, text, program, comments, mistakes: errors.map((error) => error.message) };
}

/**
 * Every file that is or would be tracked: all but what .gitignore names. Git itself is not asked: it
 * may be missing, and it refuses a clone that belongs to another user.
 */
export function readTree(root: string): Tree {
  const ignored = ignorePatterns(readFileSync(join(root, '.gitignore'), 'utf8'));
  const files: Record<string, string> = {};
  const folders = [''];
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    for (const entry of readdirSync(join(root, folder), { withFileTypes: true })) {
      const path = posix.join(folder, entry.name);
      if (entry.name === '.git' || ignored(path, entry.isDirectory())) continue;
      if (entry.isDirectory()) folders.push(path);
      else if (entry.isFile()) {
        const text = readFileSync(join(root, path), 'utf8');
        if (!text.includes('\0')) files[path] = text;
      }
    }
  }
  return treeOf(files);
}

/** The part of .gitignore's language that this repository uses: names, `*`, a leading or trailing slash. */
function ignorePatterns(text: string): (path: string, is_folder: boolean) => boolean {
  const patterns = text
    .split('\n')
    .filter((line) => line.trim() !== '' && !line.startsWith('#'))
    .map((line) => {
      const body = line.trim().replace(/^\/|\/$/g, '');
      const expression = body.replace(/[.+?^${}()|[\]\\]/g, '\\$&').replaceAll('*', '[^/]*');
      return {
        folders_only: line.trim().endsWith('/'),
        path: new RegExp(`${line.startsWith('/') ? '^' : '(?:^|/)'}${expression}$`),
      };
    });
  return (path, is_folder) =>
    patterns.some((pattern) => (is_folder || !pattern.folders_only) && pattern.path.test(path));
}

/** Line number (from 1) of `offset` in `text`. */
export function lineAt(text: string, offset: number): number {
  let line = 1;
  for (let at = text.indexOf('\n'); at !== -1 && at < offset; at = text.indexOf('\n', at + 1)) line++;
  return line;
}

/**
 * Visits `node` and everything below it; `parents` runs from the root down to the direct parent, and is only valid during
 * the visit: a copy for each node was half of the time of these tests.
 */
export function walk(node: Node, visit: (node: Node, parents: readonly Node[]) => void, parents: Node[] = []): void {
  visit(node, parents);
  parents.push(node);
  for (const key of visitorKeys[node.type] ?? []) {
    const value: unknown = Reflect.get(node, key);
    for (const child of Array.isArray(value) ? value : [value]) if (isNode(child)) walk(child, visit, parents);
  }
  parents.pop();
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && 'type' in value;
}

/** Findings for the nodes of the files that `where` lets through; `judge` answers with advice, or nothing. */
export function judgeNodes(
  tree: Tree,
  where: (path: string) => boolean,
  judge: (node: Node, parents: readonly Node[], source: Source) => string | undefined,
): Finding[] {
  const findings: Finding[] = [];
  for (const source of tree.sources.filter((each) => where(each.path))) {
    walk(source.program, (node, parents) => {
      const advice = judge(node, parents, source);
      if (advice) findings.push({ file: source.path, line: lineAt(source.text, node.start), advice });
    });
  }
  return findings;
}

/** `it` in `it.concurrent.each(…)(…)`: the name at the bottom of a chain of members and calls. */
export function rootName(node: Node): string | undefined {
  if (node.type === 'Identifier') return node.name;
  if (node.type === 'MemberExpression') return rootName(node.object);
  if (node.type === 'CallExpression') return rootName(node.callee);
  if (node.type === 'TaggedTemplateExpression') return rootName(node.tag);
  return undefined;
}

/** `env` in `process.env` and `process['env']`. */
export function memberName(node: Node): string | undefined {
  if (node.type !== 'MemberExpression') return undefined;
  if (!node.computed && node.property.type === 'Identifier') return node.property.name;
  return node.property.type === 'Literal' && typeof node.property.value === 'string' ? node.property.value : undefined;
}

export const inSource = (path: string): boolean => path.startsWith('src/');
