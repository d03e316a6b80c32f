import {
  isAlias,
  isCollection,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  parseDocument,
  visit,
  type Document,
  type Node,
  type Pair,
} from 'yaml';
import { showPath, type Path, type Problem } from './problem.ts';

/** The text of a catalogue file, parsed, with the places of everything in it. */
export type Source = {
  file: string;
  value: unknown;
  /** YAML problems. If there are any, `value` is undefined. */
  problems: Problem[];
  /** The line and column of the value at `path`, or of its key. What is missing stands where its parent begins. */
  place(path: Path, target: Target): Place;
};

export type Target = 'key' | 'value';
export type Place = { line: number; col: number };

const text_length_max = 5_000_000;
const problems_max = 20;

/** Repeating a part by an alias is cheap to write and expensive to check: ten levels of ten are a thousand million. */
const aliases_max = 1_000;

/** Parses YAML, or JSON, which is YAML too. */
export function parseSource(text: string, file: string): Source {
  const lines = new LineCounter();
  if (text.length > text_length_max) return refuse(file, `is larger than ${text_length_max / 1_000_000} MB.`);
  const doc = parseDocument(text, { lineCounter: lines, prettyErrors: false, stringKeys: true });
  const problemAt = (offset: number, message: string): Problem => ({
    severity: 'error',
    file,
    ...placeOf(lines, offset),
    path: showPath(pathAt(doc, offset)),
    message,
  });
  const problems = syntaxMistakes(doc)
    .slice(0, problems_max)
    .map(({ offset, message }) => problemAt(offset, message));
  const place = (path: Path, target: Target) => placeOf(lines, offsetOf(doc, path, target));
  if (problems.length > 0) return { file, value: undefined, problems, place };
  try {
    return { file, value: doc.toJS({ maxAliasCount: aliases_max }), problems, place };
  } catch (error) {
    if (!(error instanceof ReferenceError)) throw error;
    return refuse(file, `its aliases multiply to more than ${aliases_max} copies of one part.`);
  }
}

function refuse(file: string, message: string): Source {
  const start = { line: 1, col: 1 };
  const problem: Problem = { severity: 'error', file, ...start, path: showPath([]), message };
  return { file, value: undefined, problems: [problem], place: () => start };
}

function placeOf(lines: LineCounter, offset: number): Place {
  const { line, col } = lines.linePos(offset);
  return { line: Math.max(1, line), col: Math.max(1, col) };
}

type Mistake = { offset: number; message: string };

/** Our messages for parser errors whose own texts speak of its functions. */
const own_messages: ReadonlyMap<string, string> = new Map([
  ['DUPLICATE_KEY', 'this key exists twice.'],
  ['MULTIPLE_DOCS', 'a second document begins here; a catalogue is one.'],
]);

function syntaxMistakes(doc: Document): Mistake[] {
  const exhausted = doc.errors.find((error) => error.code === 'RESOURCE_EXHAUSTION');
  if (exhausted) return [{ offset: exhausted.pos[0], message: 'is nested too deeply.' }];
  const syntax = [...doc.errors, ...doc.warnings].map(({ code, message, pos }) => ({
    offset: pos[0],
    message: own_messages.get(code) ?? `${message.replace(/\.$/, '')}.`,
  }));
  return syntax.length > 0 ? syntax : unusableParts(doc);
}

/** Finds YAML that a catalogue does not allow: aliases that lead nowhere or into themselves, and infinite numbers. */
function unusableParts(doc: Document): Mistake[] {
  const mistakes: Mistake[] = [];
  const anchors = new Map<string, Node>();
  visit(doc, {
    Node: (_, node) => {
      const offset = node.range?.[0] ?? 0;
      if (isAlias(node)) {
        const meant = anchors.get(node.source);
        if (!meant) mistakes.push({ offset, message: `there is no anchor &${node.source} before this alias.` });
        else if ((meant.range?.[2] ?? 0) > offset) mistakes.push({ offset, message: 'the alias contains itself.' });
      } else if (node.anchor !== undefined) {
        anchors.set(node.anchor, node);
      }
      if (isScalar(node) && typeof node.value === 'number' && !Number.isFinite(node.value)) {
        mistakes.push({ offset, message: 'must be a finite number.' });
      }
    },
  });
  return mistakes;
}

function offsetOf(doc: Document, path: Path, target: Target): number {
  let node = doc.contents;
  let offset = startOf(node) ?? 0;
  for (const [index, step] of path.entries()) {
    node = isAlias(node) ? (node.resolve(doc) ?? null) : node;
    if (isMap(node)) {
      const pair = node.items.find((item) => keyOf(item) === step);
      if (!pair) return offset;
      const key_offset = isNode(pair.key) ? startOf(pair.key) : undefined;
      node = isNode(pair.value) ? pair.value : null;
      const wants_key = target === 'key' && index === path.length - 1;
      offset = (wants_key ? undefined : startOf(node)) ?? key_offset ?? offset;
    } else if (isSeq(node)) {
      const item = node.items[Number(step)];
      node = isNode(item) ? item : null;
      offset = startOf(node) ?? offset;
    } else return offset;
  }
  return offset;
}

/** Returns undefined for what is not written, such as the nothing after `models:`. */
function startOf(node: Node | null): number | undefined {
  const [start, end] = node?.range ?? [0, 0];
  return start === end ? undefined : start;
}

function keyOf(pair: Pair): unknown {
  return isScalar(pair.key) ? pair.key.value : undefined;
}

function isNode(value: unknown): value is Node {
  return isAlias(value) || isScalar(value) || isCollection(value);
}

/** The path of the innermost key or list item around `offset`. */
function pathAt(doc: Document, offset: number): Path {
  const path: (string | number)[] = [];
  let node: Node | null = doc.contents;
  while (isCollection(node)) {
    const items: readonly unknown[] = node.items;
    const index = items.findLastIndex((item) => (beginning(item) ?? Infinity) <= offset);
    const item = items[index];
    if (index === -1 || offset >= (node.range?.[2] ?? 0)) break;
    if (isSeq(node)) {
      path.push(index);
      node = isNode(item) ? item : null;
    } else {
      const { key, value } = isPairLike(item) ? item : {};
      if (!isScalar(key)) break;
      path.push(String(key.value));
      node = isNode(value) ? value : null;
    }
  }
  return path;
}

function isPairLike(item: unknown): item is Pair {
  return typeof item === 'object' && item !== null && 'key' in item && 'value' in item;
}

function beginning(item: unknown): number | undefined {
  const node = isPairLike(item) ? item.key : item;
  return isNode(node) ? node.range?.[0] : undefined;
}
