import { enableCompileCache, flushCompileCache } from 'node:module';
import { fileURLToPath } from 'node:url';

// As in scripts/medley.mjs: a start costs 0.8 s of a core instead of 1.5. Written once the service is there, for
// whoever kills it later. `npm start` has named the folder already, in time for this file too.
enableCompileCache(fileURLToPath(new URL('../node_modules/.cache/medley', import.meta.url)));

const { runService } = await import('./main/service.ts');
await runService();
flushCompileCache();
