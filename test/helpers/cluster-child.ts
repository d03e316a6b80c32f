/**
 * A process with the cluster of global-setup.ts, for scripts that run tests in several processes: prints
 * its address, stops it at the end of its input. A terminal's Ctrl-C does not end it.
 */
import setUp from './global-setup.ts';

process.on('SIGINT', () => undefined);
const stop = await setUp();
process.stdout.write(`${process.env['MEDLEY_TEST_CLUSTER']}\n`);
process.stdin.on('end', () => void stop?.()).resume();
