import type { Command } from 'commander';
import { readCaller } from '../../config.ts';
import { CommandError, says } from '../result.ts';
import { readCredentials, writeCredentials } from './credentials.ts';
import { revokeKey } from './device-grant.ts';
import { chosenUrl, readUrl } from './service.ts';
import { interruptible } from './terminal.ts';

export function logoutCommand(logout: Command): void {
  logout.option('--keep-key', 'forget the key here, and leave it as it is at the service');
  says(logout, (url) =>
    interruptible(async (signal) => {
      const { config_dir } = readCaller();
      const { current, services } = readCredentials(config_dir);
      const address = url === undefined ? (current ?? chosenUrl(undefined)) : readUrl(url);
      const credential = services.get(address);
      if (!credential) throw new CommandError(`You are not signed in to ${address}.`, 3);
      const { keepKey: keep_key = false }: { keepKey?: boolean } = logout.opts();
      const is_own = credential.source === 'login' && !keep_key;
      const deleted = is_own && (await revokeKey(address, credential.api_key, signal));
      services.delete(address);
      const next = current === address ? [...services.keys()].at(-1) : current;
      writeCredentials(config_dir, { current: next, services });
      const left = is_own
        ? ' The service gave no answer, so the key still works: delete it on the page of keys.'
        : ' The key still works.';
      return {
        json: { url: address, key_deleted: deleted },
        text: `You are signed out of ${address}.${deleted ? ' The key is deleted.' : left}`,
      };
    }),
  );
}
