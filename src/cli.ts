#!/usr/bin/env node
import { enableCompileCache } from 'node:module';
import { fileURLToPath } from 'node:url';

// Most of a command's time is the reading of some 90 sources; compiled once, they take half of it. In a
// folder of this installation: code from one that others may write to would be theirs.
enableCompileCache(fileURLToPath(new URL('../node_modules/.cache/medley', import.meta.url)));

const { runCommand } = await import('./cli/program.ts');
await runCommand(process.argv.slice(2));
