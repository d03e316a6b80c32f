import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { assert } from '../../src/lib/assert.ts';

export const repository = join(import.meta.dirname, '../..');

/**
 * Verbs of a comment before a code block, as in `<!-- run -->`:
 * - `start`: its last line starts the service, which runs until the next `start` or the end;
 * - `run`: commands of a shell, in one folder and one environment for all guides, and one for the README;
 * - `file NAME`: the text of a file that the next commands find;
 * - `output`: what the block before it prints; `…` stands for anything.
 */
export const verbs = ['start', 'run', 'file', 'output'] as const;

export type Block = {
  /** Of the line with the fence, from 1. */
  line: number;
  language: string;
  text: string;
  verb: (typeof verbs)[number] | undefined;
  argument: string;
};

export type Document = { path: string; text: string; blocks: Block[] };

export function readDocument(path: string): Document {
  const text = readFileSync(join(repository, path), 'utf8');
  return { path, text, blocks: blocksOf(text) };
}

/** The pages that the index of the documentation links, in its order: a person follows them one after the other. */
export function guidePaths(): string[] {
  const { text } = readDocument('docs/README.md');
  const pages = [...text.matchAll(/^- .*?\]\(([\w-]+\.md)\)/gm)].map(([, name = '']) => `docs/${name}`);
  assert(pages.length > 0, 'the index has pages');
  return pages;
}

/** The pages in `docs/`, as they lie there. */
export function pagesInDocs(): string[] {
  const names = readdirSync(join(repository, 'docs')).filter((name) => name.endsWith('.md'));
  return names.map((name) => `docs/${name}`);
}

/** Every document of the repository. */
export function documentPaths(): string[] {
  const decisions = readdirSync(join(repository, 'docs/decisions')).filter((name) => name.endsWith('.md'));
  return [
    'README.md',
    'ARCHITECTURE.md',
    ...pagesInDocs(),
    'STYLE.md',
    'SECURITY.md',
    'CHANGELOG.md',
    'clients/typescript/README.md',
    'clients/ai-sdk/README.md',
    'clients/python/README.md',
    ...decisions.map((name) => `docs/decisions/${name}`),
  ];
}

function blocksOf(text: string): Block[] {
  const lines = text.split('\n');
  const blocks: Block[] = [];
  for (let at = 0; at < lines.length; at++) {
    const language = /^```(\w*)$/.exec(lines[at] ?? '')?.[1];
    if (language === undefined) continue;
    const end = lines.indexOf('```', at + 1);
    if (end === -1) throw new Error(`The code block in line ${at + 1} has no end.`);
    const [, word, argument = ''] = /^<!-- (\w+)(?: (\S+))? -->$/.exec(lines[at - 1] ?? '') ?? [];
    const verb = verbs.find((each) => each === word);
    blocks.push({ line: at + 1, language, text: lines.slice(at + 1, end).join('\n'), verb, argument });
    at = end;
  }
  return blocks;
}

/** Lines of a program, of a shell or of a configuration, whatever their block is called. */
const code_line = /^\s*(?:(?:curl|npm|npx|node|git|cd|export|import|const|let|await|version:) |(?:GET|POST) \S+ +\{)/m;

/** Returns true if a block shows what somebody may type or save. The output of a command may contain such lines. */
export function isExample({ language, verb, text }: Block): boolean {
  if (language === 'mermaid') return false;
  return language !== 'text' || (verb === undefined && code_line.test(text));
}

/** The text without its code blocks. */
export function prose({ text }: Document): string {
  return text.replace(/^```[^]*?^```$/gm, '');
}

/** The body rows of the table whose first head cell is `head`: the cells, without the marks of code. */
export function tableRows({ path, text }: Document, head: string): string[][] {
  const lines = text.split('\n');
  const at = lines.findIndex((line) => line.startsWith(`| ${head} |`));
  if (at === -1) throw new Error(`${path} has no table that begins with "${head}".`);
  const rows = lines.slice(at + 2);
  return rows
    .slice(
      0,
      rows.findIndex((line) => !line.startsWith('|')),
    )
    .map(cells);
}

function cells(line: string): string[] {
  const parts = line.slice(1, -1).split(/(?<!\\)\|/);
  return parts.map((cell) => cell.trim().replaceAll('`', '').replaceAll('\\|', '|'));
}
