import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** One test of test/spec: its number (`S4.1-3`), the sentence that it shows, and its file. */
export type SpecTest = { number: string; sentence: string; file: string };

/** The parts of the page, each with the beginnings of its numbers, in this order. */
const sections: readonly [heading: string, groups: readonly string[]][] = [
  ['Specification 2: resources and their fields', ['S2.1', 'S2.2', 'S2.3', 'S2.4', 'S2.5', 'S2.6', 'S2.7']],
  ['Specification 3: states and transitions', ['S3']],
  ['Specification 4: endpoints', ['S4', 'S4.1', 'S4.2', 'S4.3', 'S4.4', 'S4.5']],
  ['Specification 5: authentication', ['S5']],
  ['Specification 6: events', ['S6', 'S6.1', 'S6.2', 'S6.3', 'S6.4', 'S6.5']],
  ['Specification 7: errors', ['S7', 'S7.1', 'S7.2', 'S7.3']],
  ['Specification 8: limits', ['S8']],
  ['Decisions: the task', ['D-task', 'D-kept']],
  ['Decisions: wait', ['D-wait']],
  ['Decisions: the order of checks on POST /v1/generate', ['D-order', 'D-circuit']],
  ['Decisions: failures, cancel, ambiguous submits', ['D-noroute', 'D-fail', 'D-cancel', 'D-ambiguous']],
  ['Decisions: money and ledger', ['D-money', 'D-ledger']],
  ['Decisions: lists, output, links', ['D-list', 'D-output', 'D-links']],
  ['Decisions: output items', ['D-item']],
  ['Decisions: models', ['D-models']],
  [
    'Decisions: balance, transactions, usage, estimate, key',
    ['D-balance', 'D-transactions', 'D-usage', 'D-estimate', 'D-key'],
  ],
  ['Decisions: authentication and keys', ['D-auth', 'D-keys']],
  ['Decisions: webhooks', ['D-webhooks']],
  ['Decisions: addresses chosen by a caller', ['D-address']],
  ['Decisions: errors', ['D-errors']],
  ['Decisions: Idempotency-Key', ['D-idempotency']],
  ['Decisions: sizes and limits', ['D-sizes', 'D-limits']],
  ['Decisions: chat', ['D-chat']],
  [
    'Decisions: paths that go beyond the specification',
    [
      'D-images',
      'D-audio',
      'D-videos',
      'D-media',
      'D-embeddings',
      'D-rerank',
      'D-moderations',
      'D-responses',
      'D-count',
      'D-files',
      'D-events',
    ],
  ],
  ['Decisions: paths without a key', ['D-health']],
];

const introduction = `# Specification coverage

Each sentence of parts 2–8 of the specification, and each decision that refines it, has a test of its own. This page is written
from the titles of those tests: \`npm test -- test/spec/coverage.unit.test.ts -u\` writes it again.

- \`S4.1-3\` is the third sentence of part 4.1. \`D-wait-2\` is the second decision about \`wait\`.
- The tests are in \`test/spec/\`. They send HTTP requests to the whole service, with a real database and the real sandbox.
- \`npm run mutants\` plants the faults of \`test/spec/mutants.json\` and expects the test of the same number to fail.
`;

/** Reads the titles of all tests in test/spec whose title begins with a number. */
export function readSpecTests(): { numbered: SpecTest[]; others: string[] } {
  const numbered: SpecTest[] = [];
  const others: string[] = [];
  for (const file of readdirSync(import.meta.dirname)) {
    if (!file.endsWith('.test.ts') || file.endsWith('.unit.test.ts')) continue;
    const text = readFileSync(join(import.meta.dirname, file), 'utf8');
    for (const [, , quoted = ''] of text.matchAll(/^it\(\s*(['"])((?:\\.|(?!\1).)*)\1/gm)) {
      const title = quoted.replaceAll(/\\(.)/g, '$1');
      const [number = '', ...words] = title.split(' ');
      if (groupOf(number) === undefined) others.push(title);
      else numbered.push({ number, sentence: words.join(' '), file });
    }
  }
  return { numbered, others };
}

/** `S4.1` of `S4.1-3`; undefined where no part of the page has such numbers. */
function groupOf(number: string): string | undefined {
  const group = /^([SD][\d.a-z-]+)-\d+$/.exec(number)?.[1];
  return sections.some(([, groups]) => group !== undefined && groups.includes(group)) ? group : undefined;
}

/** Returns the text of docs/spec-coverage.md. */
export function coveragePage(tests: readonly SpecTest[]): string {
  const parts = sections.map(([heading, groups]) => {
    const rows = groups.flatMap((group) =>
      tests
        .filter(({ number }) => groupOf(number) === group)
        .toSorted((a, b) => placeOf(a) - placeOf(b))
        .map(({ number, sentence, file }) => `| ${number} | ${sentence.replaceAll('|', '\\|')} | \`${file}\` |`),
    );
    return `## ${heading}\n\n| Number | What holds | Test |\n|---|---|---|\n${rows.join('\n')}\n`;
  });
  return [introduction, ...parts].join('\n');
}

function placeOf({ number }: SpecTest): number {
  return Number(number.slice(number.lastIndexOf('-') + 1));
}
