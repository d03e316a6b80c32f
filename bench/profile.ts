import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

type Node = { id: number; callFrame: { functionName: string; url: string; lineNumber: number }; hitCount: number };
type Profile = { nodes: Node[]; samples: number[]; timeDeltas: number[] };

const rows_max = 45;

/** Returns the functions of a process by their own time, as rows of a table. */
export function heaviest(folder: string): string[][] {
  const files = readdirSync(folder).filter((file) => file.endsWith('.cpuprofile'));
  const own_us = new Map<string, number>();
  for (const file of files) {
    const profile = JSON.parse(readFileSync(join(folder, file), 'utf8')) as Profile;
    const names = new Map(profile.nodes.map((node) => [node.id, nameOf(node)]));
    for (const [i, sample] of profile.samples.entries()) {
      const name = names.get(sample) ?? '';
      own_us.set(name, (own_us.get(name) ?? 0) + (profile.timeDeltas[i] ?? 0));
    }
  }
  const busy = [...own_us].filter(([name]) => !name.startsWith('(idle)'));
  const total_us = busy.reduce((sum, [, us]) => sum + us, 0);
  const rows = busy.toSorted((a, b) => b[1] - a[1]).slice(0, rows_max);
  return [
    ['function', 'own time of what it was not idle'],
    ...rows.map(([name, us]) => [name, `${((100 * us) / total_us).toFixed(1)} %`]),
  ];
}

function nameOf({ callFrame: { functionName, url, lineNumber } }: Node): string {
  const place = url.replace(/^file:\/\//, '').replace(/^.*?\/(?=(?:node_modules|src|bench)\/)/, '');
  return `${functionName || '(anonymous)'}${place === '' ? '' : ` ${place}:${lineNumber + 1}`}`;
}
