import { table } from '../../bench/report.ts';
import { styles, type Style } from './answers.ts';
import type { Verdict } from './judge.ts';
import type { Client } from './list.ts';
import { steps } from './programme.ts';

export type Report = { client: Client } & ({ verdicts: Verdict[]; books: string } | { not_run: string });

const beginning = `# Clients

"Point the SDK that you have at it": these clients were installed and run against this service by \`npm run clients\`, which writes this page. A person changes the base URL and the key, and nothing else; every other setting is the client's default, but opencode needs a setting that says that a model takes images.

Each client asks four models, whose upstreams speak the four styles: chat completions, messages, responses, and Gemini's. With each it runs six steps:

1. **plain**: a question and its answer.
2. **stream**: the same, in pieces.
3. **tools**: a loop of three calls of a tool, each with its result, and the last answer.
4. **image**: an image in the request, which reaches the upstream as it was; in rows with *files*, it is uploaded first and named by its address.
5. **leave**: a stream without end that the client leaves; the upstream's answer must end too (but for agents of the command line: they ask for thinking, and what thinks is read on for its usage).
6. **overflow**: the upstream refuses a request that is longer than its context; the client must raise an error.

Afterwards the books are read: every call that came to an end costs what its usage says, no hold is left, and the ledger has no difference. The upstreams are imitated, on loopback; clients run with telemetry and updates off, and with a proxy that refuses every other address.

`;

const ending = `
\`—\`: the client, or the driver of this suite, does not offer the step. A row says nothing about models that a provider really has: those differ in what they can do.

\`npm run clients -- NAME…\` runs the clients whose names contain one of the words, and prints the table; without names it runs all and writes this page. Packages go to a cache below the temporary folder (\`--cache FOLDER\`); the npm registry and PyPI must be reachable for those that are not there yet. A client is a line of \`test/clients/list.ts\` and a driver of \`test/clients/drivers/\`.
`;

/** Returns the page: the table, then the reason of each failure. */
export function documentOf(reports: readonly Report[], date: string): string {
  const head = ['Client', 'Version', 'Setting', ...styles, 'Overflow raises', 'Books'];
  const ran = reports.filter((report) => 'verdicts' in report);
  const failed = ran.filter(({ verdicts, books }) => books !== 'right' || verdicts.some(isFailure)).length;
  const count = `${date}: ${ran.length} clients were run, ${ran.length - failed} of them without a failure.`;
  const reasons = reports.flatMap(reasonsOf);
  const failures = reasons.length > 0 ? `\n## What fails, and why\n\n${reasons.join('\n')}\n` : '';
  return `${beginning}${count}\n\n${table([head, ...reports.map(rowOf)])}\n${failures}${ending}`;
}

export function isFailure({ result }: Verdict): boolean {
  return typeof result === 'object';
}

function rowOf(report: Report): string[] {
  const { name, packages, setting, from } = report.client;
  const version = packages[0]?.replace(from === 'npm' ? /^.*@/ : /^.*==/, '') ?? '';
  if ('not_run' in report) return [name, version, setting, ...styles.map(() => 'not run'), '', ''];
  const { verdicts, books } = report;
  const raised = new Set(verdicts.flatMap((one) => one.raised ?? []));
  const cells = styles.map((style) => cellOf(verdicts, style));
  return [name, version, setting, ...cells, [...raised].map((each) => `\`${each}\``).join(', '), books];
}

function cellOf(verdicts: readonly Verdict[], style: Style): string {
  const own = verdicts.filter((one) => one.style === style);
  const good = own.filter(({ result }) => result === 'ok').length;
  const absent = own.filter(({ result }) => result === 'absent').map(({ step }) => step);
  const failed = own.filter(isFailure).map(({ step }) => step);
  const notes = [...absent.map((step) => `— ${step}`), ...failed.map((step) => `✗ ${step}`)];
  return notes.length === 0 ? `✓ ${good} of ${steps.length}` : `${good} of ${steps.length}: ${notes.join(', ')}`;
}

function reasonsOf(report: Report): string[] {
  const { name } = report.client;
  if ('not_run' in report) return [`- **${name}** was not run: ${report.not_run}`];
  const by_reason = Map.groupBy(report.verdicts.filter(isFailure), ({ result }) =>
    typeof result === 'object' ? result.failed : '',
  );
  const lines = [...by_reason].map(([reason, all]) => {
    const places = [all.map(({ step }) => step), all.map(({ style }) => style)];
    const [in_steps, on_styles] = places.map((names) => [...new Set(names)].join(', '));
    return `${in_steps}: ${reason} (${on_styles})`;
  });
  if (report.books !== 'right') lines.push(`books: ${report.books}`);
  return lines.map((line) => `- **${name}**, ${line.replaceAll('|', '\\|').replaceAll('<', '&lt;')}`);
}
