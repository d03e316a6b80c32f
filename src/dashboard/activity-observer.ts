import { ApiError } from '../errors.ts';

/** A page that shows live rows of an account, as long as its session lasts and its person may read the account. */
export type Watcher = {
  account_id: string;
  session_id: string;
  /** The account's tasks or calls have changed. */
  changed(): void;
  /** Its person may read the account no more. */
  over(): void;
};

/** A page that is open has one watcher. */
export const watchers_max = 500;
export const watchers_of_account_max = 50;

/** Rows appear within a second of their event: half of it is the browser's. */
const look_every_ms = 400;

/** Statements of a look. */
export type Reads = {
  /** A text for each account, which differs when its tasks or calls have changed. */
  marksOf(account_ids: readonly string[]): Promise<ReadonlyMap<string, string>>;
  /** Those of these watchers whose person may still read their account. */
  admitted(watchers: readonly Watcher[]): Promise<ReadonlySet<Watcher>>;
};

export type Observer = {
  /**
   * Calls `changed` once the account is watched, so that nothing is missed before, and whenever something has changed.
   * Returns how to stop. Throws ApiError 429 if too many watch.
   */
  add(watcher: Watcher): () => void;
};

/**
 * Looks at all accounts that somebody watches, in a few statements for all, as long as somebody does. A look that fails
 * is made up for by the next one.
 */
export function makeObserver(reads: Reads): Observer {
  const by_account = new Map<string, Set<Watcher>>();
  const marks = new Map<string, string>();
  const all = () => [...by_account.values()].flatMap((watchers) => [...watchers]);
  let timer: NodeJS.Timeout | undefined;
  const look = async () => {
    await lookAtAll(reads, { by_account, marks, watchers: all() }).catch(() => undefined);
    timer = by_account.size > 0 ? setTimeout(() => void look(), look_every_ms) : undefined;
    timer?.unref();
  };
  return {
    add: (watcher) => {
      const { account_id } = watcher;
      const watchers = by_account.get(account_id) ?? new Set();
      if (all().length >= watchers_max || watchers.size >= watchers_of_account_max) {
        throw new ApiError('rate_limit', 'Too many pages show live rows at the moment. They are read again regularly.');
      }
      by_account.set(account_id, watchers.add(watcher));
      if (marks.has(account_id)) watcher.changed();
      timer ??= setTimeout(() => void look(), 0);
      return () => {
        watchers.delete(watcher);
        if (watchers.size > 0 || by_account.get(account_id) !== watchers) return;
        by_account.delete(account_id);
        marks.delete(account_id);
      };
    },
  };
}

type Watched = { by_account: Map<string, Set<Watcher>>; marks: Map<string, string>; watchers: readonly Watcher[] };

/** Whoever may not read an account any more hears no further event of it. */
async function lookAtAll(reads: Reads, { by_account, marks, watchers }: Watched): Promise<void> {
  const [seen, admitted] = await Promise.all([reads.marksOf([...by_account.keys()]), reads.admitted(watchers)]);
  for (const watcher of watchers) if (!admitted.has(watcher)) watcher.over();
  for (const [id, mark] of seen) {
    const before = marks.get(id);
    if (!by_account.has(id) || before === mark) continue;
    marks.set(id, mark);
    for (const watcher of by_account.get(id) ?? []) watcher.changed();
  }
}
