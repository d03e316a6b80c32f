import { runCommand } from './cli/program.ts';

/** Entry point of scripts/medley.mjs. */
await runCommand(process.argv.slice(2));
