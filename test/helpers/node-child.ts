/** The service as src/main.ts starts it, with adapters of the tests beside its own. */
import { adapters } from '../../src/providers/index.ts';
import { scripted } from './upstream.ts';

adapters['scripted'] = scripted;
await import('../../src/main.ts');
