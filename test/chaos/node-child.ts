/** The service as src/main.ts starts it, with the adapters of this folder. Ends with whoever holds its input. */
import { flushCompileCache } from 'node:module';
import { runService } from '../../src/main/service.ts';
import { adapters } from '../../src/providers/index.ts';
import { chaos, chaos_again } from './adapter.ts';

process.stdin.on('end', () => process.exit(0)).resume();
adapters['chaos'] = chaos;
adapters['chaos-again'] = chaos_again;
await runService({ alone: false }); // several APIs, each with windows of its own: no key comes near its limit
flushCompileCache(); // most are killed, and would not write it
