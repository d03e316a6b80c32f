/**
 * Returns how long this thread has computed so far, in milliseconds. A test of how much work something is compares two
 * readings, and a busy machine changes little about it.
 */
export function workedMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}
