/** The service as src/main.ts starts it, with adapters of the tests beside its own. */
import { enableCompileCache, flushCompileCache } from 'node:module';
import { join } from 'node:path';

enableCompileCache(join(import.meta.dirname, '../../node_modules/.cache/medley'));

const [{ runService }, { adapters }, { scripted }] = await Promise.all([
  import('../../src/main/service.ts'),
  import('../../src/providers/index.ts'),
  import('./upstream.ts'),
]);
adapters['scripted'] = scripted;
await runService();
flushCompileCache();
