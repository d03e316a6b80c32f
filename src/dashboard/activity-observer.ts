import { ApiError } from '../errors.ts';
import { keysChanged, type RecentRows } from '../tasks/changes.ts';

/** A page that shows live rows of an account, as long as its session lasts and its person may read the account. */
export type Watcher = {
  account_id: string;
  session_id: string;
  /** The projects that its person is limited to; undefined: not limited. */
  project_ids: readonly string[] | undefined;
  /** The account's tasks or calls have changed: of a limited person, those of their projects. */
  changed(): void;
  /** Its person may read the account no more, or another part of it. */
  over(): void;
};

/** A page that is open has one watcher. */
export const watchers_max = 500;
export const watchers_of_account_max = 50;

/** Rows appear within a second of their event: half of it is the browser's. */
const look_every_ms = 400;

export type RecentActivity = { tasks: RecentRows; calls: RecentRows };

/** Statements of a look. */
export type Reads = {
  /** A text for each account, which differs when its tasks or calls have changed. */
  marksOf(account_ids: readonly string[]): Promise<ReadonlyMap<string, string>>;
  /** Those of these watchers whose person may still read just as much of their account. */
  admitted(watchers: readonly Watcher[]): Promise<ReadonlySet<Watcher>>;
  /** The rows of each account that may be new or changed, with their keys. Only for accounts with limited watchers. */
  recentOf(account_ids: readonly string[]): Promise<ReadonlyMap<string, RecentActivity>>;
  /** The projects that these keys are in now. */
  projectsOf(key_ids: readonly string[]): Promise<ReadonlyMap<string, string>>;
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
  const state: State = { by_account: new Map(), marks: new Map(), seen_rows: new Map() };
  const { by_account, marks, seen_rows } = state;
  const all = () => [...by_account.values()].flatMap((watchers) => [...watchers]);
  let timer: NodeJS.Timeout | undefined;
  const look = async () => {
    await lookAtAll(reads, state, all()).catch(() => undefined);
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
      if (watcher.project_ids ? seen_rows.has(account_id) : marks.has(account_id)) watcher.changed();
      timer ??= setTimeout(() => void look(), 0);
      return () => {
        watchers.delete(watcher);
        if (by_account.get(account_id) !== watchers) return;
        if (limitedOf(state, account_id).length === 0) seen_rows.delete(account_id);
        if (watchers.size > 0) return;
        by_account.delete(account_id);
        marks.delete(account_id);
      };
    },
  };
}

type State = {
  by_account: Map<string, Set<Watcher>>;
  marks: Map<string, string>;
  /** The rows of accounts with limited watchers, and the mark before they were read. */
  seen_rows: Map<string, { mark: string; recent: RecentActivity }>;
};

/** Returns the watchers of an account who are limited to projects. */
function limitedOf({ by_account }: State, account_id: string): Watcher[] {
  return [...(by_account.get(account_id) ?? [])].filter(({ project_ids }) => project_ids);
}

/** Whoever may not read an account any more hears no further event of it. */
async function lookAtAll(reads: Reads, state: State, watchers: readonly Watcher[]): Promise<void> {
  const { by_account, marks } = state;
  const [seen, admitted] = await Promise.all([reads.marksOf([...by_account.keys()]), reads.admitted(watchers)]);
  for (const watcher of watchers) if (!admitted.has(watcher)) watcher.over();
  for (const [id, mark] of seen) {
    const before = marks.get(id);
    if (!by_account.has(id) || before === mark) continue;
    marks.set(id, mark);
    for (const watcher of by_account.get(id) ?? []) if (!watcher.project_ids) watcher.changed();
  }
  await lookForLimited(reads, state, seen);
}

/**
 * Tells members of projects of rows of these alone: when something of another project happens is nothing that they may
 * see. Rows are read only where an account has changed and such a member watches.
 */
async function lookForLimited(reads: Reads, state: State, marks: ReadonlyMap<string, string>): Promise<void> {
  const { seen_rows } = state;
  const due = [...marks].flatMap(([id, mark]) => {
    const before = seen_rows.get(id);
    return limitedOf(state, id).length > 0 && before?.mark !== mark ? [{ id, mark, before }] : [];
  });
  if (due.length === 0) return;
  const recents = await reads.recentOf(due.map(({ id }) => id));
  const looks = due.flatMap(({ id, before, mark }) => {
    const recent = recents.get(id);
    return recent ? [{ id, before, now: { mark, recent }, keys: changedBetween(before?.recent, recent) }] : [];
  });
  const key_ids = looks.flatMap(({ keys }) => [...keys]);
  const project_of = key_ids.length > 0 ? await reads.projectsOf(key_ids) : new Map<string, string>();
  for (const { id, before, now, keys } of looks) {
    const limited = limitedOf(state, id);
    if (limited.length === 0) continue;
    const is_first = before === undefined || seen_rows.get(id) !== before; // others have gone meanwhile, and these come
    seen_rows.set(id, now);
    const projects = new Set([...keys].map((key) => project_of.get(key)));
    for (const watcher of limited) {
      if (is_first || watcher.project_ids?.some((project) => projects.has(project))) watcher.changed();
    }
  }
}

/** Returns the keys whose rows have changed. */
function changedBetween(before: RecentActivity | undefined, now: RecentActivity): Set<string> {
  if (!before) return new Set();
  return keysChanged(before.tasks, now.tasks).union(keysChanged(before.calls, now.calls));
}
