import { memoryWindows, type Windows } from '../../src/limits/window.ts';

/** Windows of one process alone, for what needs no database. */
export function windowsOfOneProcess(): Windows {
  const windows = memoryWindows();
  return { take: async (window, name, limit, now_ms) => windows.take(window, name, limit, now_ms) };
}
