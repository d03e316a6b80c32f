/** The service as src/main.ts starts it, with the adapters of this folder. Ends with whoever holds its input. */
import { adapters } from '../../src/providers/index.ts';
import { chaos, chaos_again } from './adapter.ts';

process.stdin.on('end', () => process.exit(0)).resume();
adapters['chaos'] = chaos;
adapters['chaos-again'] = chaos_again;
await import('../../src/main.ts');
