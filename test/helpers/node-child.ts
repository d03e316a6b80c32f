/** The service as src/main.ts starts it, with adapters of the tests beside its own. */
import { runService } from '../../src/main/service.ts';
import { adapters } from '../../src/providers/index.ts';
import { scripted } from './upstream.ts';

adapters['scripted'] = scripted;
await runService({ alone: false }); // beside the API of the test
