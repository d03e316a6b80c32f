/** Of everything in web/ that is not made there: the same as long as the dashboard need not be built anew. */
export function hashOfSources(root: string): string;
