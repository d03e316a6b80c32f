import { ApiError } from '../../errors.ts';

/** Returns the error of a `pageToken` that no list has given. */
export function unknownPageToken(): ApiError {
  const text = 'pageToken is not from this list. Leave it out to begin at the first page.';
  return new ApiError('invalid_request', text, { param: 'pageToken' });
}
