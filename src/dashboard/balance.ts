import { balanceOf } from '../money/ledger.ts';
import { balanceView } from '../money/money.ts';
import { account_endpoint } from './page.ts';
import type { BalanceView } from './views/common.ts';

/** The available balance, shown on every page. */
export const get_balance = account_endpoint('GET', '/balance', 'read', async (app, { account }) => {
  await app.holds.flush(account.id);
  const row = await balanceOf(app.db, account.id);
  if (!row) throw new Error(`the account ${account.id} has no balance`);
  const { currency, amount, held } = row;
  const view: BalanceView = {
    balance: balanceView(amount, currency),
    held: balanceView(held, currency),
    available: balanceView(amount - held, currency),
  };
  return { status: 200, body: view };
});
