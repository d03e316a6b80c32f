import { runCommand } from './cli/program.ts';

/** What scripts/medley.mjs runs. */
await runCommand(process.argv.slice(2));
