import { sweepUnsent } from '../backup/places.ts';
import { sweepSpool } from '../files/spool.ts';

/** The parts of the app that removing leftovers takes. */
type LeftoverParts = {
  readonly config: { readonly data_dir: string };
  readonly log: { warn(details: object, message: string): void };
  onStop(close: () => void): void;
};

const sweep_every_ms = 3_600_000;

/**
 * Removes now and every hour, until the service stops, what processes that were killed left on this machine's disk. Each
 * process does so for its own machine: no job of a worker reaches the disk of another one.
 */
export function watchLeftovers({ config, log, onStop }: LeftoverParts): void {
  const sweep = () =>
    void Promise.all([sweepSpool(config.data_dir), sweepUnsent(config.data_dir)]).catch((error: unknown) =>
      log.warn({ err: error }, 'what killed processes left on the disk cannot be removed'),
    );
  const timer = setInterval(sweep, sweep_every_ms).unref();
  onStop(() => clearInterval(timer));
  sweep();
}
