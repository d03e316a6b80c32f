/** Search parameters of the page. */
export type KeysSearch = { deleted?: true | undefined };

export function readKeysSearch(search: Record<string, unknown>): KeysSearch {
  return { deleted: search['deleted'] === true ? true : undefined };
}
