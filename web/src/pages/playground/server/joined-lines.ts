/** The lists of one person's conversations: of this browser, and of the server. */

type LocalList<T> = {
  lines: readonly (T & { version: number | undefined; is_sent: boolean })[];
  /** Deleted here, and not yet on the server. */
  removed: ReadonlySet<string>;
};

/** Returns a line for each conversation of both: the server's where only that is new. */
export function joinedLines<T extends { id: string }>(
  { lines, removed }: LocalList<T>,
  on_server: readonly (T & { version: number })[],
): T[] {
  const local = new Map(lines.map((line) => [line.id, line]));
  const theirs = on_server.filter(({ id, version }) => {
    const own = local.get(id);
    return own ? own.is_sent && version > (own.version ?? 0) : !removed.has(id);
  });
  const ids = new Set(theirs.map(({ id }) => id));
  return [...lines.filter(({ id }) => !ids.has(id)), ...theirs];
}
