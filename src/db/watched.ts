import type { Listener } from './notify.ts';

/** A copy that a node keeps, and reads again when the rows have changed. */
export type Watcher = {
  /** Reads it now. */
  refresh(): Promise<void>;
  close(): Promise<void>;
};

/** A NOTIFY may be lost with its connection: a change counts within a second all the same. */
const read_every_ms = 1_000;

/**
 * Reads at once, after each NOTIFY on the channel, and every second. The first failure is thrown; later ones go to
 * `onError`, and what was read before stays.
 */
export async function watch(
  { listener, channel }: { listener: Listener; channel: string },
  read: () => Promise<void>,
  onError: (error: unknown) => void,
): Promise<Watcher> {
  let reading: Promise<void> = Promise.resolve();
  let waiting: Promise<void> | undefined;
  /** One after the other, so that an older look never overwrites a newer one; what comes meanwhile shares the next. */
  const refresh = () =>
    (waiting ??= reading = reading.catch(() => undefined).then(() => ((waiting = undefined), read())));
  const look = () => void refresh().catch(onError);
  await refresh();
  await listener.subscribe(channel, { onPayload: look, onGap: look });
  const timer = setInterval(look, read_every_ms);
  return {
    refresh,
    close: async () => {
      clearInterval(timer);
      await reading.catch(() => undefined);
    },
  };
}
