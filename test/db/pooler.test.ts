import { expect, it, onTestFinished } from 'vitest';
import { reach } from '../../src/db/reach.ts';
import { startPooler } from '../helpers/pooler.ts';

async function reachPooler(processOf: (connection: number, question: number) => number): Promise<void> {
  const { url, stop } = await startPooler(processOf);
  onTestFinished(stop);
  await reach({ connection: { connectionString: url } });
}

it.each([
  ['all connections share one process', () => 1],
  ['processes take turns', (_: number, question: number) => question],
  [
    'one of two is handed on at the third look',
    (connection: number, question: number) => (question < 8 ? connection : 1),
  ],
])('a pooler that gives connections away between transactions is refused in a sentence (%s)', async (_, processOf) => {
  const sentence = /^The pooler that DATABASE_URL leads to .* set pool_mode = session for this database/;
  await expect(reachPooler(processOf)).rejects.toThrow(sentence);
});

it('a pooler that keeps one process for each connection is as good as PostgreSQL', async () => {
  await expect(reachPooler((connection) => connection)).resolves.toBeUndefined();
});
