import { execFileSync } from 'node:child_process';
import { availableParallelism } from 'node:os';

/**
 * Assigns processes to cores. The measured ones have two cores, on every machine; callers and upstream have
 * two others if there are four, or share them.
 */
type Cores = {
  /** Processes that are started from here on are measured. */
  measured(): void;
  /** Processes that are started from here on measure, as this one does. */
  measuring(): void;
  /** For the report. */
  words: string;
};

export function divideCores(): Cores {
  const count = availableParallelism();
  if (count >= 4 && moveTo('2,3')) {
    const words = 'Whoever is measured, with its PostgreSQL, has two cores; callers and upstream have two others.';
    return { measured: () => void moveTo('0,1'), measuring: () => void moveTo('2,3'), words };
  }
  const words = `Whoever is measured, its PostgreSQL, callers and upstream share ${count} cores.`;
  return { measured: () => undefined, measuring: () => undefined, words };
}

/** Moves all threads of this process; its children begin where it is. False where there is no way to. */
function moveTo(cores: string): boolean {
  try {
    execFileSync('taskset', ['--all-tasks', '--pid', '--cpu-list', cores, String(process.pid)], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}
