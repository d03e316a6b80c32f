/** Appends like `list.push(...items)`, for which the stack is too small above a hundred thousand. */
export function append<T>(list: T[], items: Iterable<T>): void {
  for (const item of items) list.push(item);
}
