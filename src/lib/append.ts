/** As `list.push(...items)`, which the stack has no room for above a hundred thousand. */
export function append<T>(list: T[], items: Iterable<T>): void {
  for (const item of items) list.push(item);
}
