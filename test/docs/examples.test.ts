import { join } from 'node:path';
import sharp from 'sharp';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { embeddedConnection } from '../../src/embedded-postgres/embedded.ts';
import { probeMedia } from '../helpers/prober.ts';
import { testDatabase, type TestDatabase } from '../helpers/database.ts';
import { depth } from '../helpers/depth.ts';
import { ask } from '../helpers/embedded.ts';
import { Checkout } from './checkout.ts';
import { guidePaths, readDocument, repository, tableRows, type Block, type Document } from './document.ts';
import { matches } from './matches.ts';

/** The state that a step needs of those before it. */
type Session = { checkout: Checkout; printed: string; hanging: string; failed: string };
type Step = { name: string; take: (session: Session) => Promise<void> };

/** Steps that check more of a document's commands than their output, by a part of their block. */
const further: Record<string, Step[]> = {
  'git clone': [{ name: 'the printed line makes the image of the README', take: expectImage }],
  'node waves.mjs': [{ name: 'waves.mp4 is a video', take: expectVideo }],
  'How warm is it?': [{ name: 'every directive does what the table says', take: expectDirectives }],
  'account create --name Acme': [{ name: 'no run is left that would hold money', take: untilHangEnded }],
  'MEDLEY_DATA=restored npm start': [
    { name: 'the backup has all tasks and files', take: expectBackup },
    { name: 'the run that hangs has ended as the table says', take: expectHangEnded },
  ],
};

/** The README and the guides (usually the first one), each group by a reader with a clone of their own. */
describe.each([
  ['the README', ['README.md']],
  ['the guides, one after the other', guidePaths().slice(0, depth(1, Infinity))],
])('%s', (_, paths) => {
  let session: Session;
  let database: TestDatabase;

  beforeAll(async () => {
    database = await testDatabase({ state: 'empty' });
    session = { checkout: await Checkout.make(database.url), printed: '', hanging: '', failed: '' };
  });
  afterAll(async () => {
    await session.checkout.remove();
    await database.drop();
  });

  const documents: Document[] = paths.map(readDocument);
  describe.each(documents.filter(({ blocks }) => blocks.some(({ verb }) => verb)))('$path', ({ blocks }) => {
    beforeAll(() => {
      session.failed = '';
    });

    const steps = blocks.flatMap((block) => [stepOf(block), ...furtherSteps(block)]);
    it.each(steps)('$name', (step) => expectStep(session, step), 300_000);
  });
});

/** Takes a step, unless an earlier one has failed: it would fail for no reason of its own, and slowly. */
async function expectStep(session: Session, { name, take }: Step): Promise<void> {
  expect(session.failed).toBe('');
  session.failed = name;
  await take(session);
  session.failed = '';
}

function furtherSteps({ text }: Block): Step[] {
  return Object.entries(further).flatMap(([part, steps]) => (text.includes(part) ? steps : []));
}

function stepOf(block: Block): Step {
  const name = `line ${block.line}: ${block.verb ?? 'only read'}`;
  return { name, take: (session) => follow(session, block) };
}

async function follow(session: Session, { verb, language, text, argument }: Block): Promise<void> {
  const { checkout } = session;
  switch (verb) {
    case undefined:
      return;
    case 'file':
      return checkout.write(argument, text);
    case 'output': {
      const as_promised = matches(language, text, session.printed);
      return expect(as_promised, `shown:\n${text}\nprinted:\n${session.printed}`).toBe(true);
    }
    case 'start':
      session.printed = await checkout.start(startLine(text));
      return;
    case 'run':
      session.printed = await checkout.run(text);
  }
}

/** The clone is what the checkout stands for. */
function startLine(text: string): string {
  const lines = text.split('\n').filter((line) => !line.startsWith('git clone '));
  expect(lines).toHaveLength(1);
  return lines[0] ?? '';
}

async function expectImage({ checkout, printed }: Session): Promise<void> {
  const line = printed.split('\n').find((each) => each.startsWith('  curl '));
  expect(await checkout.run(line ?? '')).toBe('hello.png\n');
  const [created, shown] = await Promise.all(
    [checkout.folder, join(repository, 'docs')].map((folder) =>
      sharp(join(folder, 'hello.png')).removeAlpha().raw().toBuffer({ resolveWithObject: true }),
    ),
  );
  expect(created?.info).toEqual(shown?.info);
  // Another processor may round differently while it draws; a wrong letter changes thousands of pixels by 200.
  const differences = created?.data.map((value, i) => Math.abs(value - (shown?.data[i] ?? 0))) ?? [];
  expect(differences.filter((difference) => difference > 8).length).toBeLessThan(500);
}

type Task = {
  id: string;
  status: string;
  output: { url: string }[];
  error: { type: string } | null;
  cost: { amount: string };
};

const directives = tableRows(readDocument('docs/sandbox.md'), 'In the prompt').map(
  ([prompt = '', status = '', error_type = '', amount = '', counts = '']) => ({
    directive: prompt.replace(/\]\].*/, ']]'),
    seen: { status, error_type, amount, counts: counts === 'yes' },
  }),
);

/** Reads a row of the table about a task; only the database of `data_folder` says if it counts. */
async function seenOf({ checkout }: Session, data_folder: string, { id, status, error, cost }: Task) {
  const connection = await embeddedConnection(join(checkout.folder, data_folder));
  if (!connection) throw new Error(`no database runs in ${data_folder}`);
  const sql = `select counts_as_failure as counts from tasks where id = '${id}'`;
  const [row] = await ask<{ counts: boolean }>(connection, sql);
  return { status, error_type: error?.type ?? '', amount: cost.amount, counts: row?.counts };
}

/** The one that hangs for 20 s is looked at when all the others are through. */
async function expectDirectives(session: Session): Promise<void> {
  for (const { directive, seen } of directives) {
    const wait = directive === '[[hang]]' ? 0 : 60;
    const body = { model: 'sandbox/image', input: { prompt: `A storm ${directive}` } };
    const task = await session.checkout.call<Task>(`/v1/generate?wait=${wait}`, body);
    if (wait === 0) session.hanging = task.id;
    else expect(await seenOf(session, '.medley', task), directive).toEqual(seen);
  }
}

/** However fast the machine is: the run ends after 20 s. */
async function untilHangEnded({ checkout, hanging }: Session): Promise<void> {
  const status = async () => (await checkout.call<Task>(`/v1/tasks/${hanging}`)).status;
  await expect.poll(status, { timeout: 120_000, interval: 100 }).toBe('failed');
}

async function expectHangEnded(session: Session): Promise<void> {
  const task = () => session.checkout.call<Task>(`/v1/tasks/${session.hanging}`);
  const row = directives.find(({ directive }) => directive === '[[hang]]');
  expect(await seenOf(session, 'restored', await task())).toEqual(row?.seen);
}

async function expectVideo({ checkout }: Session): Promise<void> {
  expect(await probeMedia(join(checkout.folder, 'waves.mp4'))).toMatchObject({
    ok: true,
    probe: { type: 'video', content_type: 'video/mp4', duration: 3, width: 854, height: 480 },
  });
}

async function expectBackup({ checkout }: Session): Promise<void> {
  const { data } = await checkout.call<{ data: Task[] }>('/v1/tasks?status=succeeded&limit=100');
  const urls = data.flatMap(({ output }) => output.map(({ url }) => url));
  expect(urls.length).toBeGreaterThanOrEqual(5);
  const statuses = await Promise.all(urls.map(async (url) => (await fetch(url)).status));
  expect(new Set(statuses)).toEqual(new Set([200]));
}
