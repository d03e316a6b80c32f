/**
 * Every list of the dashboard with 100,000 rows behind it, in a real browser: from the click that opens it to its first
 * row. `npm run bench pages [-- --rows 100000] [-- --quick]`
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { makeLoginLink } from '../src/accounts/sign-in/login-links.ts';
import { ownerOf } from '../src/accounts/members.ts';
import { service_rules } from '../src/chat/books.ts';
import { openDatabase, type Db } from '../src/db/database.ts';
import { checkBooks } from '../src/money/books.ts';
import { addUpUsage } from '../src/money/usage.ts';
import { launchBrowser, type Page } from '../test/helpers/browser.ts';
import { makeBigAccount, type BigAccount } from './big-account.ts';
import { openHome } from './home.ts';
import { table, writeSections } from './report.ts';
import { port, quantile, startService, stopServices } from './service.ts';

const { values } = parseArgs({
  options: { rows: { type: 'string', default: '100000' }, quick: { type: 'boolean', default: false } },
});
const count = values.quick ? 2_000 : Number(values.rows);
const rounds = values.quick ? 2 : 7;
const url = `http://127.0.0.1:${port}`;

const yaml = `
version: 1
storage: { shared: true }
billing: { issuer: { name: Bench } }
`;

/** The target of every list. */
const to_rows_ms_max = 300;
const patience_ms = 60_000;

/** A list: its address, and a mark of its first row. */
type List = { path: string; row: string };

const row = 'main table.list tbody tr td';
const lists: readonly List[] = [
  { path: '/activity', row },
  { path: '/activity?tab=tasks', row },
  { path: '/activity?tab=chats', row },
  { path: '/activity?tab=chats&outcome=failed', row },
  { path: '/activity?tag=nightly', row },
  { path: '/activity?q=nightly', row },
  { path: '/activity?error=upstream_error', row },
  { path: '/billing', row },
  { path: '/keys', row },
  { path: '/webhooks', row },
  { path: '/settings?tab=audit', row },
  { path: '/usage', row: 'main table tbody tr td' },
  { path: '/admin/accounts', row },
  { path: '/admin/calls', row },
  { path: '/admin/failures', row },
  { path: '/admin/deliveries', row },
  { path: '/admin/audit', row },
];

async function main(): Promise<void> {
  const home = await openHome({ fsync: 'off', max_wal_size: '8GB' });
  const { folder, embedded, leash } = home;
  writeFileSync(join(folder, 'medley.yaml'), yaml);
  const db = openDatabase({ connection: embedded.connection, connections_max: 4, is_patient: true });
  const chromium = await launchBrowser();
  try {
    await startService('api', { folder, database_url: embedded.url, leash });
    const account = await fill(db);
    const page = await (await chromium.browser.newContext({ reducedMotion: 'reduce' })).newPage();
    page.setDefaultTimeout(patience_ms);
    await signIn(page, db, account.account_id);
    const rows = [['list', 'ms to its first row, median', 'least', 'most', `target ${to_rows_ms_max} ms`]];
    for (const list of lists) rows.push(await measure(page, list));
    const books = await checkBooks(db, { full: true, more: service_rules });
    console.log(table(rows));
    if (!values.quick) {
      writeSections('pages', 'npm run bench pages', [
        introduction(account),
        table(rows),
        `Difference of the books: ${books.difference} (${books.entries} entries).`,
      ]);
    }
  } finally {
    await chromium.close();
    stopServices();
    await db.close();
    await home.close();
  }
}

/** An account with so many generations, twice as many chat calls, and as many keys, entries of its audit log and other accounts. */
async function fill(db: Db): Promise<BigAccount> {
  const account = await makeBigAccount(db, { ledger_entries: count * 10 + 1, days: 60, end: new Date() });
  const more = (sql: string, ...params: unknown[]) => db.query(sql, [count, ...params]);
  await more(
    `insert into accounts (id, name, currency, webhook_secret, created_at)
     select 'acc_bench' || lpad(i::text, 17, '0'), 'Customer ' || i, 'USD', 'whsec_' || repeat('A', 43) || '=', now() - i * interval '1 min' from generate_series(1, $1::int) i`,
  );
  await more(
    `insert into balances (account_id, currency) select 'acc_bench' || lpad(i::text, 17, '0'), 'USD' from generate_series(1, $1::int) i`,
  );
  await more(
    `insert into api_keys (id, account_id, name, hash, prefix, last_four, created_at)
     select 'key_bench' || lpad(i::text, 17, '0'), $2, 'Key of customer ' || i, sha256(i::text::bytea), 'mdl_Bnch', 'aaaa',
            now() - i * interval '1 min' from generate_series(1, $1::int) i`,
    account.account_id,
  );
  await more(
    `insert into budgets (key_id, account_id, month) select 'key_bench' || lpad(i::text, 17, '0'), $2, date_trunc('month', now()) from generate_series(1, $1::int) i`,
    account.account_id,
  );
  await more(
    `insert into audit_entries (id, account_id, actor, action, subject, created_at)
     select 'aud_bench' || lpad(i::text, 17, '0'), $2, 'Bench', 'key.create', 'key_bench' || lpad(i::text, 17, '0'), now() - i * interval '1 min'
       from generate_series(1, $1::int) i`,
    account.account_id,
  );
  await db.query('vacuum analyze');
  await addUpUsage(db);
  return account;
}

/** Its owner, who is an operator, by a sign-in link. */
async function signIn(page: Page, db: Db, account_id: string): Promise<void> {
  const now = new Date();
  const user_id = await ownerOf(db, account_id, now);
  await db.query('update auth."user" set "isOperator" = true where id = $1', [user_id]);
  await page.goto(await makeLoginLink(db, url, user_id, now));
  await page.waitForURL(`${url}/`);
}

/** Opens the list from a page that has loaded, as a link of the menu does, in rounds; nothing of it is in the page's memory. */
async function measure(page: Page, list: List): Promise<string[]> {
  const times_ms: number[] = [];
  for (let round = 0; round <= rounds; round++) {
    await page.goto(`${url}/settings?tab=appearance`);
    await page.waitForLoadState('networkidle');
    times_ms.push(await page.evaluate<number>(timeToRow(list)));
  }
  const warm_ms = times_ms.slice(1); // the first one loads the scripts of the page
  const shown = [quantile(warm_ms, 0.5), Math.min(...warm_ms), Math.max(...warm_ms)].map((ms) => ms.toFixed(0));
  console.log(list.path, ...shown);
  return [list.path, ...shown, quantile(warm_ms, 0.5) <= to_rows_ms_max ? 'met' : 'missed'];
}

/** Runs in the page. Returns milliseconds from the click on a link to the first row, drawn. */
const timeToRow = ({ path, row: mark }: List) => `new Promise((resolve, reject) => {
  if (document.querySelector(${JSON.stringify(mark)})) reject(new Error('the page before has such a row, too'));
  const begun_ms = performance.now();
  const look = () => {
    if (document.querySelector(${JSON.stringify(mark)})) requestAnimationFrame(() => resolve(performance.now() - begun_ms));
    else if (performance.now() - begun_ms > ${patience_ms}) reject(new Error('no row came'));
    else requestAnimationFrame(look);
  };
  history.pushState({}, '', ${JSON.stringify(path)});
  dispatchEvent(new PopStateEvent('popstate'));
  look();
})`;

function introduction({ rows }: BigAccount): string {
  return `One account with ${rows.tasks.toLocaleString('en')} generations, ${rows.chats.toLocaleString('en')} chat calls, ${rows.ledger.toLocaleString('en')} entries of its ledger, ${rows.deliveries.toLocaleString('en')} deliveries, ${count.toLocaleString('en')} keys and as many entries of its audit log; ${count.toLocaleString('en')} other accounts. Chromium, service and PostgreSQL share the cores. From the click on a link within the dashboard, with nothing of the list in the page's memory, to its first row, drawn; ${rounds} times each.`;
}

await main();
