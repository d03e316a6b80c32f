import type { Surroundings } from '../../src/catalog/check-settings.ts';
import { readCatalogFile } from '../../src/catalog/file.ts';
import { showProblem } from '../../src/catalog/problem.ts';

const surroundings: Surroundings = {
  adapters: ['sandbox', 'mock'],
  canServe: (_, kind) => kind !== 'chat',
  secret: (reference) => (reference === 'env:SET' ? 'secret' : undefined),
};

/**
 * Returns the messages about a file, one line each: `error: ` or `warning: `, the place, the path, the message.
 * A ▸ in the text marks a place, and stands in the lines for that place.
 */
export function problemLines(marked: string, more: Partial<Surroundings> = {}): string[] {
  const before = marked.split('▸')[0] ?? '';
  const place = `medley.yaml:${before.split('\n').length}:${before.length - before.lastIndexOf('\n')} `;
  const reading = readCatalogFile(marked.replace('▸', ''), 'medley.yaml', { ...surroundings, ...more });
  const problems = reading.ok ? reading.warnings : reading.problems;
  return problems.map((problem) => `${problem.severity}: ${showProblem(problem).replace(place, '▸')}`);
}

export function errorsIn(marked: string): string[] {
  return problemLines(marked).filter((line) => line.startsWith('error'));
}

/** Texts with what is to be said about the marked place; a test is named by the latter. */
export function cases(pairs: [marked: string, expected: string][]): { marked: string; expected: string }[] {
  return pairs.map(([marked, expected]) => ({ marked, expected }));
}

/** A file with one provider, p, and these models; each is indented by two. */
export function withModels(models: string): string {
  return `version: 1\nproviders:\n  p: { adapter: mock }\nmodels:\n${models}`;
}

const parts = {
  schema:
    'input_schema: { type: object, required: [prompt], properties: { prompt: { type: string }, text: { type: string }, ' +
    'duration: { type: number, default: 5 }, length: { type: number }, steps: { enum: ["1", "2"], default: "1" }, ' +
    'resolution: { enum: [480p, 720p], default: 480p }, mode: { enum: [a, b] } } }',
  price: 'price: [{ unit: second, amount: "0.1" }]',
  estimate: 'estimate: { second: $input.duration }',
  routes: 'routes: [{ provider: p }]',
};

/** A file with a video model that has everything it needs, but for `without`; `more` is added to it. */
export function video(more: string, ...without: (keyof typeof parts)[]): string {
  const remaining = Object.entries(parts).filter(([name]) => !without.some((each) => each === name));
  const lines = [...remaining.map(([, part]) => part), ...(more === '' ? [] : [more])];
  return withModels(`  - id: a/b\n    kind: video\n${lines.map((line) => `    ${line}\n`).join('')}`);
}
