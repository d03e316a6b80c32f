import { enableCompileCache, flushCompileCache } from 'node:module';
import { fileURLToPath } from 'node:url';

// As in cli.ts: a start costs 0.8 s of a core instead of 1.5. Written once the service is there, for whoever
// kills it later.
enableCompileCache(fileURLToPath(new URL('../node_modules/.cache/medley', import.meta.url)));

const { runService } = await import('./main/service.ts');
await runService();
flushCompileCache();
