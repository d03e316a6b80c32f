/**
 * Ends what a bench has started if the bench itself is gone, however it went: a small process that
 * outlives it and hears of its end by a closed channel.
 */
import { fork, type ChildProcess } from 'node:child_process';
import { rmSync } from 'node:fs';

type Message = { pid: number; signal: NodeJS.Signals } | { ended: number } | { folder: string } | { done: true };

export type Leash = {
  /** Kill this process when the bench is gone, unless it has ended before. */
  hold(child: ChildProcess): void;
  /** PostgreSQL: SIGQUIT ends it with all its processes, at once. */
  holdServer(pid: number): void;
  /** Remove this folder then. */
  remove(folder: string): void;
  /** Everything was ended in order. */
  letGo(): void;
};

export function makeLeash(): Leash {
  const child = fork(import.meta.filename, ['--leash'], { detached: true, stdio: 'ignore' });
  child.unref();
  child.channel?.unref();
  const tell = (message: Message) => void (child.connected && child.send(message));
  return {
    hold: (started) => {
      const { pid } = started;
      if (pid === undefined) return;
      tell({ pid, signal: 'SIGKILL' });
      started.once('exit', () => tell({ ended: pid }));
    },
    holdServer: (pid) => tell({ pid, signal: 'SIGQUIT' }),
    remove: (folder) => tell({ folder }),
    letGo: () => {
      tell({ done: true });
      child.disconnect();
    },
  };
}

function watch(): void {
  const signals = new Map<number, NodeJS.Signals>();
  let folder: string | undefined;
  process.on('message', (message: Message) => {
    if ('pid' in message) signals.set(message.pid, message.signal);
    else if ('ended' in message) signals.delete(message.ended);
    else if ('folder' in message) ({ folder } = message);
    else process.exit();
  });
  process.on('disconnect', () => {
    for (const [pid, signal] of signals) end(pid, signal);
    setTimeout(() => {
      if (folder !== undefined) rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 200 });
      process.exit();
    }, 2_000);
  });
}

function end(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It has ended already.
  }
}

if (process.argv.includes('--leash')) watch();
