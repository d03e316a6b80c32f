/** Returns a number with its noun: `1 file`, `2,000 files`; `many` is a plural that is not made by an s. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count.toLocaleString('en-US')} ${count === 1 ? one : many}`;
}
