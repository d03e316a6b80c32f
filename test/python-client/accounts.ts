import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { findAccount } from '../../src/accounts/accounts.ts';
import type { ClientOptions, TestApp } from '../helpers/app.ts';

export type Accounts = { url: string; stop(): Promise<void> };

/** Starts a server on loopback that makes an account at each request, for tests in another process. */
export async function serveAccounts(service: TestApp): Promise<Accounts> {
  const makeAccount = async (options: ClientOptions) => {
    const { key, account_id } = await service.client(options);
    const account = await findAccount(service.app.db, account_id);
    return JSON.stringify({ key, webhook_secret: account?.webhook_secret });
  };
  const server = createServer((request, response) => {
    json(request)
      .then((body) => makeAccount(optionsOf(body)))
      .then(
        (text) => response.end(text),
        (error: unknown) => response.writeHead(500).end(String(error)),
      );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${address.port}`,
    stop: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function optionsOf(body: unknown): ClientOptions {
  const credit = typeof body === 'object' && body !== null && 'credit' in body ? body.credit : undefined;
  return typeof credit === 'string' ? { credit } : {};
}
