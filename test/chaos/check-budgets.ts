import { groupBy, none, row, type Query, type Row } from './findings.ts';

type Budget = {
  id: string;
  account_id: string;
  scope: 'account' | 'key';
  subject: string | null;
  amount: string;
  spent: string;
  held: string;
  exposed: string;
};
type Charge = { account_id: string; key_id: string; charged: string };

/** Adds up what was charged in the scope of each hard budget, from the entries alone, when nothing is under way any more. */
export async function checkBudgets(ask: Query): Promise<Row[]> {
  const budgets = await ask<Budget>(
    'select id, account_id, scope, subject, amount, spent, held, exposed from account_budgets where is_hard',
  );
  const charges = await ask<Charge>(
    `select account_id, key_id, sum(revenue + loss) as charged from ledger_entries where type = 'settle' group by 1, 2`,
  );
  const holds = await ask<{ account_id: string }>('select account_id from open_holds');
  const [refusals] = await ask<{ count: string }>(
    `select coalesce(sum(count), 0) as count from refusals where reason = 'budget_reached'`,
  );
  const of_account = groupBy(charges, ({ account_id }) => account_id);
  const busy = new Set(holds.map(({ account_id }) => account_id));
  const wrong = budgets.flatMap(({ id, account_id, scope, subject, ...figures }) => {
    const own = (of_account.get(account_id) ?? []).filter(({ key_id }) => scope === 'account' || key_id === subject);
    const charged = own.reduce((sum, each) => sum + BigInt(each.charged), 0n);
    const { amount, spent, held, exposed } = figures;
    return [
      ...(charged > BigInt(amount) ? [`${id}: ${charged} is charged of ${amount}`] : []),
      ...(charged === BigInt(spent) ? [] : [`${id}: ${charged} is charged, and ${spent} counted`]),
      ...(busy.has(account_id) || (held === '0' && exposed === '0') ? [] : [`${id} still has ${held} + ${exposed}`]),
    ];
  });
  const used_up = budgets.filter(({ amount, spent }) => BigInt(spent) * 2n > BigInt(amount)).length;
  return [
    row(
      'budgets: hard ones / of them more than half used / calls they refused',
      [budgets.length, used_up, refusals?.count].join(' / '),
    ),
    none('budgets: hard ones that were passed, miscounted, or hold what is over', wrong),
  ];
}
