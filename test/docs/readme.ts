import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { readDocument } from './document.ts';
import { matches } from './matches.ts';

/** Reader of a README: the folder in which files are written, and how a command is run there. */
export type Reader = { folder: () => string; run: (command: string) => Promise<string> };

/** Tests that every example of a README is run, writes its files, and prints what is shown below it. */
export function describeReadme(path: string, { folder, run }: Reader): void {
  const { blocks } = readDocument(path);
  const runs = blocks.filter(({ verb }) => verb === 'run').map((block) => [block.text, block] as const);

  describe.each([path])('%s', () => {
    test('has no example that nothing runs', () => {
      expect(blocks.filter(({ verb }) => !verb)).toEqual([]);
      expect(runs.length).toBeGreaterThanOrEqual(3);
    });

    test.each(runs)('%s prints what is shown', async (command, block) => {
      for (const { verb, argument, text } of blocks) if (verb === 'file') writeFileSync(join(folder(), argument), text);
      const shown = blocks[blocks.indexOf(block) + 1];
      const printed = await run(command);
      expect(matches(shown?.language ?? '', shown?.text ?? '', printed), printed).toBe(true);
    });
  });
}
