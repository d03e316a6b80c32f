import type { ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Duplex } from 'node:stream';
import { isRecord } from './text.ts';

/** One request may not delay others by more. */
export const turn_limit_ms = 200;

/** A turn of the service's event loop, by the clock, and the CPU that its main thread used in it. */
export type Turn = { from_ms: number; to_ms: number; cpu_ms: number };

/** Heap and external are those of the main thread; resident memory has also the other threads' heaps. */
export type Memory = { heap_mb: number; external_mb: number; resident_mb: number; threads: number };

/** The event loop of a service process that was started with `watched_arguments` and a pipe at descriptor 3. */
export type LoopTurns = {
  /** Called with each long turn, also of less than the limit. */
  onTurn(listener: (turn: Turn) => void): void;
  /** Of the service, after a full collection. */
  memory(): Promise<Memory>;
};

export const watched_arguments = ['--expose-gc', '--import', join(import.meta.dirname, 'turns-child.ts')];

export function watchTurns(child: ChildProcess): LoopTurns {
  const pipe = child.stdio[3];
  if (!(pipe instanceof Duplex)) throw new Error('the service was started without a pipe for its turns');
  const listeners: ((turn: Turn) => void)[] = [];
  const waiting: ((memory: Memory) => void)[] = [];
  pipe.on('error', () => {}); // the service is gone
  createInterface({ input: pipe }).on('line', (line) => {
    const report: unknown = JSON.parse(line);
    if (!isRecord(report)) return;
    if (isTurn(report['turn'])) for (const listener of listeners) listener(report['turn']);
    if (isMemory(report['memory'])) waiting.shift()?.(report['memory']);
  });
  return {
    onTurn: (listener) => void listeners.push(listener),
    memory: () =>
      new Promise((resolve) => {
        waiting.push(resolve);
        pipe.write('memory\n');
      }),
  };
}

function isTurn(value: unknown): value is Turn {
  return isRecord(value) && typeof value['cpu_ms'] === 'number';
}

function isMemory(value: unknown): value is Memory {
  return isRecord(value) && typeof value['heap_mb'] === 'number';
}
