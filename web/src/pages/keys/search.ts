/** Search parameters of the page. */
export type KeysSearch = { deleted?: true | undefined; project?: string | undefined };

export function readKeysSearch(search: Record<string, unknown>): KeysSearch {
  const { deleted, project } = search;
  return {
    deleted: deleted === true ? true : undefined,
    project: typeof project === 'string' && project !== '' ? project : undefined,
  };
}
