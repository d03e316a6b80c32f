import type { QueryClient } from '@tanstack/react-query';

/** Options of a request whose answer is the only copy of a secret: it is not kept after it was shown. */
export const shown_once = { mutationKey: ['shown once'], gcTime: 0 };

/**
 * Tells whether such an answer is on its way: a dialog that is closed then loses it. Right from the click on: a page that
 * is drawn a moment later does not know yet.
 */
export function isSecretComing(queries: QueryClient): boolean {
  return queries.isMutating({ mutationKey: shown_once.mutationKey }) > 0;
}
