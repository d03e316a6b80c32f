/** States of keys that a list can be narrowed to. */
export const states = ['active', 'ended', 'all'] as const;

/** Search parameters of the page. Without a state, all keys but deleted ones. */
export type KeysSearch = {
  search?: string | undefined;
  state?: (typeof states)[number] | undefined;
  project?: string | undefined;
};

export function readKeysSearch(search: Record<string, unknown>): KeysSearch {
  const { state, deleted } = search;
  return {
    search: textOf(search['search']),
    state: states.find((each) => each === state) ?? (deleted === true ? 'all' : undefined), // `deleted`: of older links
    project: textOf(search['project']),
  };
}

function textOf(value: unknown): string | undefined {
  const text = typeof value === 'string' || typeof value === 'number' ? String(value) : '';
  return text === '' ? undefined : text;
}
