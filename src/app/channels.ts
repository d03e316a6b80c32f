import type { Authenticator } from '../accounts/authenticate.ts';
import type { Notifier } from '../db/notify.ts';

/** Channels between nodes besides the engine's. */
export const keys_channel = 'keys_changed';
export const reload_channel = 'reload';
export const reloaded_channel = 'reloaded';

/** A node's reply to `medley reload`, as base64url of its JSON. */
export type ReloadReply = { node: string; ok: boolean; message: string };

/**
 * Tells all nodes that something about keys or accounts has changed, after it is committed. This node knows it at once:
 * whoever deleted a key and calls with it is refused.
 */
export function tellKeyChange(app: { authenticator: Pick<Authenticator, 'invalidate'>; notifier: Notifier }): void {
  app.authenticator.invalidate();
  app.notifier.notify(keys_channel, 'all');
}
