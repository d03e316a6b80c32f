import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { repository } from '../docs/document.ts';

const run = (...words: string[]) => spawnSync('node', words, { cwd: repository, encoding: 'utf8', timeout: 20_000 });

test.each(['chaos', 'mutants', 'sbom'])('npm run %s answers an unknown option with one sentence, and 2', (name) => {
  const { status, stdout, stderr } = run(`scripts/${name}.mjs`, '--no-such', '1');
  expect({ status, stdout, stderr }).toEqual({ status: 2, stdout: '', stderr: "Unknown option '--no-such'.\n" });
});
