import { stringifySearch } from '../../ui/search-text.ts';
import type { ActivitySearch } from './search.ts';

/** The service takes addresses of 2,048 characters; that of a file has the names of columns, too. */
const length_max = 1_500;

/** Returns the address of the list with these filters; undefined if it is too long. */
export function activityAddress(search: ActivitySearch): string | undefined {
  const address = `/activity${stringifySearch(search)}`;
  return address.length > length_max ? undefined : address;
}
