/** Search parameters of the page: the code, where the address of the terminal was opened. */
export type DeviceSearch = { code?: string | undefined };

export function readDeviceSearch(search: Record<string, unknown>): DeviceSearch {
  const { code } = search;
  return { code: typeof code === 'string' && /^[A-Za-z -]{1,40}$/.test(code) ? code : undefined };
}
