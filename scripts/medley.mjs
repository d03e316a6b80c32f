// npm run -s medley -- COMMAND: an operator's command. Plain JavaScript: a first file with types would load Node's
// compiler for them before any cache is open, 50 ms of each command and 16 MB.
import { enableCompileCache } from 'node:module';
import { fileURLToPath } from 'node:url';

// Half of a command's time is the reading of sources. In a folder of this installation: code from one that
// others may write to would be theirs.
enableCompileCache(fileURLToPath(new URL('../node_modules/.cache/medley', import.meta.url)));

await import('../src/cli.ts');
