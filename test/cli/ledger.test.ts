import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { makeBigAccount, type BigAccount } from '../../bench/big-account.ts';
import { makeInvoices } from '../../src/billing/invoices.ts';
import { close, hold } from '../../src/money/holds.ts';
import { credit, listEntries } from '../../src/money/ledger.ts';
import { usageOf } from '../../src/money/usage.ts';
import { removeAllOld } from '../../src/worker.ts';
import { expectExactBooks, startTestApp, type TestApp } from '../helpers/app.ts';
import { testClock } from '../helpers/clock.ts';
import { closeOf, holdOf, openWallet, type Wallet } from '../money/setup.ts';
import { commandsBeside } from './medley.ts';

const clock = testClock();
let service: TestApp;
let big: BigAccount;
let wallet: Wallet;

const at = (text: string) => new Date(`2026-${text}Z`);

beforeAll(async () => {
  clock.stop('2026-03-20T12:00:00Z');
  service = await startTestApp({ worker: false, clock });
  const { db } = service.app;
  big = await makeBigAccount(db, { ledger_entries: 9_001, days: 60, end: at('03-20T12:00:00') });
  // An account with holds that are open when January ends: one ends in February, one has not ended.
  wallet = await openWallet(db, { credit: 1_000n, now: at('01-10T00:00:00') });
  await hold(db, holdOf(wallet, 'within', 10n), at('01-20T00:00:00'));
  await close(db, closeOf(wallet, 'within', 7n), at('01-20T00:01:00'));
  await hold(db, holdOf(wallet, 'across', 20n), at('01-31T23:59:00'));
  await hold(db, holdOf(wallet, 'open', 30n), at('01-31T23:59:30'));
  await close(db, closeOf(wallet, 'across', 12n), at('02-01T00:01:00'));
  await makeInvoices(db, {
    issuer: { name: 'Żółw', address: '', tax_id: '', series: 'ZW' },
    month: '2026-01',
    now: at('02-02T00:00:00'),
  });
});
afterAll(() => service.stop());

const refsOf = async ({ account_id }: Wallet) => {
  const rows = await service.app.db.query<{ ref: string }>(
    'select ref from ledger_entries where account_id = $1 order by number',
    [account_id],
  );
  return rows.map(({ ref }) => ref);
};
const balances = () => service.app.db.query('select account_id, amount, held from balances order by account_id');
const file = (name: string) => join(service.app.config.data_dir, name);
const usage = () => {
  const range = { from: at('01-01T00:00:00'), to: at('04-01T00:00:00') };
  return usageOf(service.app.db, { account_id: big.account_id, ...range, group_by: ['day', 'model'] });
};

it('a month of the ledger is written to a file, closed and removed, and the books prove the rest against what it came to', async () => {
  const commands = commandsBeside(service);
  const { db } = service.app;
  const path = file('january.jsonl');
  expect(await commands.fails(1, 'ledger', 'close', '2026-02', '--export', path)).toContain(
    'Tasks or records of chat calls of 2026-02 are still there.',
  );
  clock.stop('2026-09-01T00:00:00Z');
  await removeAllOld(service.app, new AbortController().signal);
  await expectExactBooks(service.app);
  const before = [await balances(), await usage()];

  const closed = await commands.ok('ledger', 'close', '2026-01', '--export', path);
  const entries = readFileSync(path, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line): unknown => JSON.parse(line));
  expect(closed).toMatchObject({ accounts: 2, exported: entries.length, file: path });
  const [first_id] = [big.account_id, wallet.account_id].toSorted();
  expect(entries[0]).toMatchObject({ account_id: first_id, number: 1, type: 'topup' });
  // The two top-ups stay, and the holds that were open at its end.
  expect(closed).toMatchObject({ removed: entries.length - 4 });
  expect(await refsOf(wallet)).toEqual([expect.stringMatching(/^initial/), 'across', 'open', 'across']);
  await expectExactBooks(service.app);
  expect([await balances(), await usage()]).toEqual(before);

  // A second run finds nothing; a file that is there is not written over.
  expect(await commands.fails(1, 'ledger', 'close', '2026-01', '--export', path)).toContain('cannot be made');
  expect(await commands.ok('ledger', 'close', '2026-01', '--export', file('none.jsonl'))).toMatchObject({
    exported: 0,
    removed: 0,
  });

  // The next month closes upon it; then what ended in it goes, too.
  await commands.ok('ledger', 'close', '2026-02', '--export', file('february.jsonl'));
  expect(await refsOf(wallet)).toEqual([expect.stringMatching(/^initial/), 'open']);
  await expectExactBooks(service.app);
  expect([await balances(), await usage()]).toEqual(before);

  // Money goes on as ever: the open hold ends, and no payment is booked twice.
  await close(db, closeOf(wallet, 'open', 25n), at('09-01T00:00:00'));
  const again = { account_id: wallet.account_id, type: 'topup', amount: 1_000n, reason: 'x' } as const;
  const [first] = (await listEntries(db, { account_id: wallet.account_id, type: 'topup', limit: 1 })).entries;
  expect(await credit(db, { ...again, ref: first?.ref ?? '' }, at('09-01T00:00:00'))).toMatchObject({
    outcome: 'exists',
  });
  await expectExactBooks(service.app);
});

it('what was closed wrongly, or changed afterwards, is found', async () => {
  const { db } = service.app;
  await db.query('update ledger_openings set available = available + 1, adjust = adjust - 1 where account_id = $1', [
    big.account_id,
  ]);
  await expect(expectExactBooks(service.app)).rejects.toThrow('entries are numbered without gaps');
  await db.query('update ledger_openings set available = available - 1, adjust = adjust + 1 where account_id = $1', [
    big.account_id,
  ]);
  await expectExactBooks(service.app);
  const [last] = await db.query<{ number: bigint }>(
    'select max(number) as number from ledger_entries where account_id = $1',
    [big.account_id],
  );
  const closing = (number: bigint, count: bigint, month = '2026-04-01') =>
    db.query('select close_ledger($1, $2, $3, $4)', [big.account_id, month, number, count]);
  await expect(closing(last?.number ?? 0n, 1n)).rejects.toThrow('and 1 were exported');
  const [opening] = await db.query<{ number: bigint }>('select number from ledger_openings where account_id = $1', [
    big.account_id,
  ]);
  const count = (last?.number ?? 0n) - (opening?.number ?? 0n);
  await expect(closing(last?.number ?? 0n, count, '2026-03-01')).rejects.toThrow('is of a later month');
  await expect(db.query('delete from ledger_entries where number = $1', [last?.number])).rejects.toThrow(
    'ledger entries are never changed or deleted',
  );
});

it('months that are too new, and words that are no month, are refused', async () => {
  const commands = commandsBeside(service);
  const month = new Date().toISOString().slice(0, 7);
  const to = ['--export', file('new.jsonl')];
  expect(await commands.fails(1, 'ledger', 'close', month, ...to)).toContain(`${month} is too new`);
  expect(await commands.fails(2, 'ledger', 'close', '2026-13', ...to)).toContain('The month must be like 2026-01');
});
