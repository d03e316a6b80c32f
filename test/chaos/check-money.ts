import { groupBy, none, row, type Query, type Row } from './findings.ts';

type Entry = {
  account_id: string;
  number: string;
  type: string;
  ref: string;
  available: string;
  held: string;
  topup_source: string;
  revenue: string;
  loss: string;
  adjust: string;
  available_after: string;
  held_after: string;
};
type Balance = { account_id: string; amount: string; held: string; entries: string };
type Charged = { account_id: string; id: string; status: string; cost: string; estimate: string };

/** Adds all money up by its own arithmetic, from the entries alone, and compares it with what the tables say. */
export async function checkMoney(ask: Query): Promise<Row[]> {
  const entries = await ask<Entry>('select * from ledger_entries order by account_id, number');
  const balances = await ask<Balance>('select * from balances');
  const tasks = await ask<Charged>('select account_id, id, status, cost, estimate from tasks');
  const open = await ask<{ ref: string; amount: string; is_of_dead_node: boolean }>(
    `select ref, amount, kind = 'chat' and not exists (select from nodes n
       where n.id = h.node_id and n.seen_at > now() - interval '10 seconds') as is_of_dead_node from open_holds h`,
  );
  const by_account = groupBy(entries, (entry) => entry.account_id);
  let difference = 0n;
  const wrong: string[] = [];
  for (const balance of balances) {
    const off = offOf(balance, by_account.get(balance.account_id) ?? [], wrong);
    difference += off < 0n ? -off : off;
  }
  const booked = sumOf(entries, (e) => BigInt(e.topup_source) + BigInt(e.revenue) + BigInt(e.loss) + BigInt(e.adjust));
  const total = sumOf(balances, (b) => BigInt(b.amount));
  if (booked + total !== 0n) wrong.push(`all books together differ by ${booked + total}`);
  difference += booked + total < 0n ? -(booked + total) : booked + total;
  const held = sumOf(balances, (b) => BigInt(b.held));
  return [
    row('money: difference after adding it all up again', decimal(difference), wrong),
    row('money: entries of the ledger', entries.length),
    row(
      'holds that leaked',
      decimal(held),
      open.filter((each) => !each.is_of_dead_node).map(({ ref, amount }) => `${ref} still holds ${amount}`),
    ),
    row(
      '… of them chat calls of nodes that have just died, to be given back when their time is over',
      open.filter((each) => each.is_of_dead_node).length,
    ),
    none('tasks whose money is not settled or released exactly once', unsettled(tasks, entries)),
  ];
}

/** By how much an account's row differs from its entries; every step that does not follow is told. */
function offOf(balance: Balance, entries: readonly Entry[], wrong: string[]): bigint {
  let available = 0n;
  let held = 0n;
  for (const [i, entry] of entries.entries()) {
    available += BigInt(entry.available);
    held += BigInt(entry.held);
    const legs = [entry.available, entry.held, entry.topup_source, entry.revenue, entry.loss, entry.adjust];
    const name = `${entry.account_id} #${entry.number} (${entry.type} ${entry.ref})`;
    if (legs.reduce((sum, leg) => sum + BigInt(leg), 0n) !== 0n) wrong.push(`${name}: the legs do not add up`);
    if (BigInt(entry.number) !== BigInt(i + 1)) wrong.push(`${name}: a number is missing before it`);
    if (BigInt(entry.available_after) !== available || BigInt(entry.held_after) !== held)
      wrong.push(`${name}: does not follow`);
    if (available < 0n || held < 0n) wrong.push(`${name}: below zero`);
  }
  const off_held = BigInt(balance.held) - held;
  const off_available = BigInt(balance.amount) - BigInt(balance.held) - available;
  if (off_held !== 0n || off_available !== 0n || BigInt(balance.entries) !== BigInt(entries.length))
    wrong.push(`${balance.account_id}: the balance differs by ${off_available} available and ${off_held} held`);
  return (off_held < 0n ? -off_held : off_held) + (off_available < 0n ? -off_available : off_available);
}

function unsettled(tasks: readonly Charged[], entries: readonly Entry[]): string[] {
  const by_ref = groupBy(entries, (entry) => `${entry.account_id} ${entry.ref}`);
  return tasks.flatMap((task) => {
    const own = by_ref.get(`${task.account_id} ${task.id}`) ?? [];
    const holds = own.filter((entry) => entry.type === 'hold');
    const closes = own.filter((entry) => entry.type === 'settle' || entry.type === 'release');
    const charged = sumOf(closes, (entry) => BigInt(entry.revenue) + BigInt(entry.loss));
    const problems = [
      ...(holds.length === 1 && holds[0]?.held === task.estimate ? [] : ['not held once at its estimate']),
      ...(closes.length === 1 ? [] : [`closed ${closes.length} times`]),
      ...(charged === BigInt(task.cost) ? [] : [`${charged} charged, costs ${task.cost}`]),
      ...(task.status === 'failed' && (charged !== 0n || closes[0]?.type !== 'release')
        ? ['failed, and not refunded']
        : []),
      ...(task.status === 'succeeded' && closes[0]?.type !== 'settle' ? ['succeeded, and not settled'] : []),
    ];
    return problems.map((problem) => `${task.id}: ${problem}`);
  });
}

function sumOf<T>(items: readonly T[], valueOf: (item: T) => bigint): bigint {
  return items.reduce((sum, item) => sum + valueOf(item), 0n);
}

function decimal(millionths: bigint): string {
  const text = String(millionths < 0n ? -millionths : millionths).padStart(7, '0');
  return `${millionths < 0n ? '-' : ''}${text.slice(0, -6)}.${text.slice(-6)}`;
}
