/**
 * The service as src/main.ts starts it, with the adapters of this folder. Ends with whoever holds its input. The
 * clock of its system is wrong by `CHAOS_CLOCK_MIN` minutes; a line `clock N` on its input sets that anew.
 */
import { flushCompileCache } from 'node:module';
import { createInterface } from 'node:readline';
import { adapters } from '../../src/providers/index.ts';
import { chaos, chaos_again, chatAdapters } from './adapter.ts';
import { setClock } from '../helpers/wrong-clock.ts';

setClock(Number(process.env['CHAOS_CLOCK_MIN'] ?? '0'));
createInterface({ input: process.stdin })
  .on('line', (line) => setClock(Number(/^clock (-?\d+)$/.exec(line)?.[1] ?? '0')))
  .on('close', () => process.exit(0));
adapters['chaos'] = chaos;
adapters['chaos-again'] = chaos_again;
Object.assign(adapters, chatAdapters(process.argv[2] ?? ''));
const { runService } = await import('../../src/main/service.ts'); // with the clock as it is by now
await runService();
flushCompileCache(); // most are killed, and would not write it
