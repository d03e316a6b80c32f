import type { Command } from 'commander';
import { PermissionDeniedError } from '../../../clients/typescript/src/index.ts';
import { says, table } from '../result.ts';
import { takesService, withService } from './service.ts';
import { interruptible, oneLine } from './terminal.ts';

export function whoamiCommand(whoami: Command): void {
  says(takesService(whoami), () =>
    interruptible(async (signal) => {
      const { url: option }: { url?: string } = whoami.opts();
      return withService(option, async ({ url, client, credential }) => {
        const key = await client.key({ signal });
        const balance = await client.balance({ signal }).catch((error: unknown) => {
          if (error instanceof PermissionDeniedError) return null; // a key that may not read
          throw error;
        });
        const name = credential?.account?.id === key.account_id ? credential.account.name : null;
        const account = { id: key.account_id, name };
        const limit = key.spend_limit === null ? 'none' : `${key.spend_limit.amount} ${key.spend_limit.currency}`;
        const rows = [
          ['Service', url],
          ['Account', name === null ? oneLine(account.id) : `${oneLine(name)} (${oneLine(account.id)})`],
          ['Key', `${oneLine(key.name)} (${oneLine(key.id)})`],
          ['Spent', `${key.spent.amount} ${key.spent.currency} this month, limit ${limit}`],
          ...(balance ? [['Available', `${balance.available.amount} ${balance.available.currency}`]] : []),
        ];
        return { json: { url, account, key, balance }, text: table(rows) };
      });
    }),
  );
}
