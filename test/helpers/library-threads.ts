import { readdir, readFile } from 'node:fs/promises';

/** Returns the number of threads that the library of sharp has in this process of Linux. */
export async function libraryThreads(pid: number): Promise<number> {
  const threads = await readdir(`/proc/${pid}/task`);
  const names = await Promise.all(
    threads.map((thread) => readFile(`/proc/${pid}/task/${thread}/comm`, 'utf8').catch(() => '')), // it may have ended
  );
  return names.filter((name) => name.startsWith('libvips')).length;
}
