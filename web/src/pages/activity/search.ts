export type ActivityTab = 'all' | 'tasks' | 'chats';

/** The name of a pair of metadata in an address. */
export type PairName = `metadata.${string}`;

/** Filters by the names that a caller put on a call, and by how it failed. */
export type LabelSearch = {
  user?: string | undefined;
  tag?: string | undefined;
  error?: string | undefined;
  http_status?: string | undefined;
  [pair: PairName]: string | undefined;
};

/** Search parameters of the page: the list, its filters and its order. */
export type ActivitySearch = LabelSearch & {
  /** Absent: all. */
  tab?: 'tasks' | 'chats' | undefined;
  q?: string | undefined;
  status?: string | undefined;
  outcome?: string | undefined;
  model?: string | undefined;
  key?: string | undefined;
  project?: string | undefined;
  from?: string | undefined;
  to?: string | undefined;
  sort?: 'oldest' | 'cost' | undefined;
};

/** Values of an address may be anything: a number where somebody looks for `2026`. */
export function readActivitySearch(search: Record<string, unknown>): ActivitySearch {
  const text = (name: string) => textOf(search[name]);
  return {
    tab: tabOf(search),
    q: text('q'),
    status: text('status'),
    outcome: text('outcome'),
    model: text('model'),
    key: text('key'),
    project: text('project'),
    ...readLabelSearch(search),
    from: text('from'),
    to: text('to'),
    sort: search['sort'] === 'oldest' || search['sort'] === 'cost' ? search['sort'] : undefined,
  };
}

/** The filters by labels in an address, of whichever list of calls. */
export function readLabelSearch(search: Record<string, unknown>): LabelSearch {
  const http_status = textOf(search['http_status']);
  return {
    user: textOf(search['user']),
    tag: textOf(search['tag']),
    error: textOf(search['error']),
    http_status: isHttpStatus(http_status) ? http_status : undefined,
    ...Object.fromEntries(pairsOf(search).map(({ name, value }) => [name, value])),
  };
}

function textOf(value: unknown): string | undefined {
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** Only generations have a status. */
function tabOf({ tab, status }: Record<string, unknown>): 'tasks' | 'chats' | undefined {
  if (tab === 'tasks' || tab === 'chats') return tab;
  return tab !== 'all' && typeof status === 'string' && status !== '' ? 'tasks' : undefined;
}

export function isHttpStatus(text: string | undefined): boolean {
  return text !== undefined && /^[1-5]\d\d$/.test(text);
}

const pair_prefix = 'metadata.';

/** Returns the name of a pair of metadata as addresses have it; undefined for a name that no filter can have. */
export function pairName(name: string): PairName | undefined {
  return name === '' || name.includes(']') ? undefined : `${pair_prefix}${name}`;
}

/** Returns the pairs of metadata in an address; `key` is the name as the caller wrote it. */
export function pairsOf(search: Readonly<Record<string, unknown>>) {
  return Object.entries(search).flatMap(([parameter, each]) => {
    const key = parameter.startsWith(pair_prefix) ? parameter.slice(pair_prefix.length) : '';
    const [name, value] = [pairName(key), textOf(each)];
    return name === undefined || value === undefined ? [] : [{ name, key, value }];
  });
}
