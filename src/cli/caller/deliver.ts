import type { Task } from '../../../clients/typescript/src/index.ts';
import { readCaller } from '../../config.ts';
import type { CommandResult } from '../result.ts';
import { saveOutputs, type Target } from './outputs.ts';
import { imageForTerminal } from './pictures.ts';
import type { Service } from './service.ts';
import { oneLine, printable } from './terminal.ts';

/** The use that is made of a task that has succeeded. */
export type Delivery = { target: Target; quiet: boolean; json: boolean; show: boolean };

const shown_bytes_max = 20_000_000;

/** Saves the files, shows the images, and says what it cost. */
export async function deliver(
  { client }: Service,
  task: Task,
  { target, quiet, json, show }: Delivery,
  signal: AbortSignal,
): Promise<CommandResult> {
  const files = await saveOutputs(client, task, target, signal);
  if (show && !json && !quiet && target.kind !== 'stdout') await showImages(client, task, signal);
  if (!quiet) process.stderr.write(`${priceLine(task)}\n`);
  return { json: { ...task, files }, text: target.kind === 'stdout' ? '' : linesOf(task, files).join('\n') };
}

function priceLine({ id, cost, created_at, completed_at }: Task): string {
  const took_s = (Date.parse(completed_at ?? '') - Date.parse(created_at)) / 1000;
  const time = Number.isFinite(took_s) ? `, ${took_s.toFixed(1)} s` : '';
  return `${oneLine(id, 60)}: ${oneLine(cost.amount, 30)} ${oneLine(cost.currency, 10)}${time}`;
}

/** The files that are there now; of what was not saved, the text itself or the link. */
function linesOf({ output }: Task, files: readonly string[]): string[] {
  if (files.length > 0) return [...files];
  return output.map(({ text, url }) => (text === undefined ? oneLine(url, 5_000) : shownText(text)));
}

function shownText(text: string): string {
  return process.stdout.isTTY ? printable(text) : text;
}

async function showImages(client: Service['client'], { output }: Task, signal: AbortSignal): Promise<void> {
  const { images } = readCaller();
  if (!process.stdout.isTTY || images === undefined) return;
  for (const each of output) {
    if (each.type !== 'image' || each.size_bytes > shown_bytes_max) continue;
    const blob = await client.download(each, { signal });
    const sequence = await imageForTerminal(new Uint8Array(await blob.arrayBuffer()), images);
    if (sequence !== undefined) process.stdout.write(sequence);
  }
}
