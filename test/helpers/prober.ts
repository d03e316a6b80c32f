import { openProber } from '../../src/storage/probe.ts';

/** Measures files in processes that the tests of a file share. */
export const prober = openProber();

export const probeMedia = prober.probe;
